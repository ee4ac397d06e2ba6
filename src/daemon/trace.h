#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <string>

#include "core/ids.h"
#include "core/units.h"
#include "policy/task.h"
#include "protocol/control_page.h"

namespace heddle::daemon {

struct TraceEvent {
  uint64_t number = 0;  // counts from 0
  TimePoint time{};
  const char* kind = "";  // task_arrived, task_granted, task_ended, task_refused, extended, worker_died, ...
  JobId job;
  SessionId session;
  TaskId task;
  int64_t device = -1;
  Bytes memory;
  policy::ComputeNeed need;  // of its largest launch that is known of
  std::string reason;
  uid_t uid = 0;          // whose it is
  protocol::Usage usage;  // of an ended task
};

// The latest events, for `heddle batch --trace`. When it is full the oldest go.
class Trace {
 public:
  explicit Trace(size_t capacity) : capacity_(capacity) {}

  void add(TraceEvent event) {
    event.number = next_++;
    if (events_.size() == capacity_) events_.pop_front();
    events_.push_back(std::move(event));
  }
  const std::deque<TraceEvent>& events() const { return events_; }
  uint64_t next() const { return next_; }
  uint64_t first() const { return next_ - events_.size(); }

 private:
  size_t capacity_;
  uint64_t next_ = 0;
  std::deque<TraceEvent> events_;
};

}  // namespace heddle::daemon
