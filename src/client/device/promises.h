#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "protocol/ring.h"

// Memory that probes of compiled programs announced (include/heddle/task.h) and that no cudaMalloc has asked for yet.
// It lies in the arena already, so that heddled hears of it with the task; a cudaMalloc of exactly its size takes it.
// What is not taken goes back when the compiler sees no allocation of the task ahead, at the latest at its end.
namespace heddle::client {

// What a declared task said against what came, in bytes as the program asked for them.
struct TaskAccount {
  uint64_t declared = 0;    // promised by the probe and found space for
  uint64_t taken = 0;       // of that, allocated by the program
  uint64_t undeclared = 0;  // allocated while the task was the newest, without a promise: extensions
};

// Not thread-safe: under its device's lock. Tasks are numbered from 1, in the order of their probes.
class Promises {
 public:
  // `totals` over all tasks, for others to see.
  explicit Promises(protocol::TaskTotals& totals) : totals_(totals) {}

  void open(uint64_t task);
  // One buffer of `bytes` at `address`, for an open task.
  void add(uint64_t task, uint64_t bytes, uint64_t address);
  // The oldest promise of exactly `bytes`; its buffer is the program's from now on.
  std::optional<uint64_t> take(uint64_t bytes);
  // An allocation that no promise was there for.
  void allocated_without(uint64_t bytes);

  // Undoes open() and what was added, none of which was taken; returns the buffers' addresses.
  std::vector<uint64_t> take_back(uint64_t task);

  // Addresses of the task's buffers that nobody took; nobody will. Nothing of a task that is not open.
  std::vector<uint64_t> untaken(uint64_t task);

  struct Closed {
    TaskAccount account;
    std::vector<uint64_t> left;  // addresses that nobody took
  };
  // nullopt for a task that is not open.
  std::optional<Closed> close(uint64_t task);

 private:
  struct Promise {
    uint64_t task, address;
  };
  protocol::TaskTotals& totals_;
  std::map<uint64_t, std::deque<Promise>> by_size_;
  std::map<uint64_t, TaskAccount> open_;
};

}  // namespace heddle::client
