#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "core/units.h"

namespace heddle::simulator {

// What will happen, in the order of time; at the same time in the order in which it was put in.
struct Event {
  enum class Kind {
    kArrival,     // of job `index`
    kHostDone,    // job `index` has computed on the host
    kHostStep,    // on a host with a limit somebody has, unless it changed since (`version`)
    kWorkDone,    // the device `index` has done something, unless it changed since (`version`)
    kLeaseEnds,   // the lease of device `index` with number `version`
    kWorkerGone,  // it was terminated, under the same
    kResumed,     // another one goes on, under the same
    kDispatch,    // the dispatch policy of device `index` wants to decide
    kSchedule,    // the scheduler wants to decide
    kPromoted,    // another worker goes on with job `index`, behind a promotion
    kHostWait,    // job `index` has waited for one in its burst of number `version`
    kReturned,    // likewise, behind its return from swap space
    kAdmission,   // jobs that wait in line may be admitted
  };
  TimePoint at;
  Kind kind;
  uint32_t index = 0;
  uint64_t version = 0;
};

class EventQueue {
 public:
  void put(Event event) { queue_.push({event, ++number_}); }
  bool empty() const { return queue_.empty(); }
  const Event& next() const { return queue_.top().event; }
  Event take() {
    const Event event = queue_.top().event;
    queue_.pop();
    return event;
  }

 private:
  struct Numbered {
    Event event;
    uint64_t number;
    bool operator<(const Numbered& other) const {
      return event.at != other.event.at ? event.at > other.event.at : number > other.number;
    }
  };
  std::priority_queue<Numbered> queue_;
  uint64_t number_ = 0;
};

}  // namespace heddle::simulator
