#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "device/device.h"
#include "device/software/operation.h"

// The order of operations: which may start now. Plain state without threads or a clock; its owner locks.
//
// Every stream runs its operations one after the other. Stream 0, CUDA's legacy default stream, always exists: an
// operation of it starts when all earlier ones of every blocking stream have ended, and holds back all later ones of
// those. A stream that was destroyed still runs what it was given.
namespace heddle::software {

struct Stream {
  device::StreamIndex index = 0;
  bool non_blocking = false;
  int priority = 0;  // lower runs first, as in CUDA
  bool destroyed = false;
  std::deque<std::unique_ptr<Operation>> queue;
  TimePoint last_end{};
};

class StreamTable {
 public:
  StreamTable();

  Status create(device::StreamIndex index, bool non_blocking, int priority);
  Status destroy(device::StreamIndex index);
  Result<Stream*> find(device::StreamIndex index);

  void append(Stream& stream, std::unique_ptr<Operation> operation);
  // Operations that may start now; each is returned once, with `ready` set.
  std::vector<Operation*> take_ready();
  // Those that wait for the operation's tag may go on, from `ended`. A hold's tag counts once it is released.
  void completed(const Operation& operation);
  // Takes a started operation off its stream and destroys it.
  void retire(Operation& operation);

 private:
  bool may_start(const Operation& front) const;
  TimePoint ready_time(const Operation& front) const;
  bool is_legacy(const Stream& stream) const { return &stream == legacy_; }
  void check_later(Stream& stream);

  std::unordered_map<device::StreamIndex, Stream*> by_index_;
  std::vector<std::unique_ptr<Stream>> streams_;
  Stream* legacy_ = nullptr;
  std::vector<Stream*> to_check_;  // whose front may have become ready
  std::unordered_map<device::Tag, std::vector<Stream*>> waiting_for_;
  std::unordered_set<device::Tag> pending_;  // tags handed over and not completed
  uint64_t next_sequence_ = 1;
};

}  // namespace heddle::software
