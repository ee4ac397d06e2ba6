#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "simulator/replay_outcome.h"

namespace heddle::simulator {

// Compares the answers that an input log has with those that were decided anew, and counts in `outcome`, which outlives
// this. Answers are lines of the log.
class ReplayAnswers {
 public:
  explicit ReplayAnswers(ReplayOutcome& outcome) : outcome_(outcome) {}

  void decided(std::string answer) { due_.push_back(std::move(answer)); }
  void logged(const std::string& answer, uint64_t line);
  // Nothing more of what was decided so far follows in the log: its next input stands in `line`.
  void end(uint64_t line);
  // Whoever wrote the log ended here, maybe before the answers. They are written at once, but not together with the
  // question; of those of which some are there, the others are missing.
  void cut_off();

 private:
  void differ(std::string logged, std::string replayed, uint64_t line);

  ReplayOutcome& outcome_;
  std::deque<std::string> due_;  // that the log has not told of yet
  bool answered_ = false;        // it has told of some
};

}  // namespace heddle::simulator
