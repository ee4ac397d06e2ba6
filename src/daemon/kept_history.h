#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/log.h"
#include "daemon/event_loop.h"
#include "policy/placement/history.h"

namespace heddle::daemon {

// What the placement policy has learned of applications, in a file, so that it outlives heddled: a crash, an end, and
// where the file's directory does, the machine's.
//
// The file is small, since a history knows no more than a thousand applications. It is replaced as a whole, by a
// rename, a second after something was learned and when heddled ends: so turns hardly wait for it, and a crash costs
// what the last second taught. A file that makes no sense is told of, nothing is taken from it, and the next one
// replaces it.
//
// It has what the policy knows that heddled runs. One that is set by a command begins with nothing, so that a batch
// finds the same under each policy, and what the one before knew goes with the next that is learned.
class KeptHistory {
 public:
  using Ask = std::function<const policy::History*()>;  // what is known now; null: the policy does not learn

  KeptHistory(EventLoop& loop, std::shared_ptr<spdlog::logger> log) : loop_(loop), log_(std::move(log)) {}

  // What the file knows; nothing where there is none. `path` empty: nothing is kept.
  std::vector<policy::KnownApp> open(std::string path, Ask ask);
  // Once a turn: whether there is something new to write.
  void look();
  // heddled ends: what is new is written, and nothing after it, as the programs that it ends were not through.
  void finish();

 private:
  void save();

  EventLoop& loop_;
  std::shared_ptr<spdlog::logger> log_;
  std::string path_;
  Ask ask_;
  uint64_t written_ = 0;  // version of what the file has
  EventLoop::Timer due_;
  bool failed_ = false;  // the file could not be written when it was tried last
};

}  // namespace heddle::daemon
