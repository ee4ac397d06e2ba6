#pragma once

#include <vector>

#include "core/units.h"
#include "device/cuda/driver.h"

namespace heddle::cuda {

// Events that are used again and again, and when they happened, on the clock of this machine.
//
// The driver tells the time between two events as a float of milliseconds, which is exact to a microsecond for some
// seconds only: so the event that times are measured from is replaced by a later one in time.
//
// Thread safety: take() and give_back() under the owner's lock; time_of() from the one thread that looks.
class EventClock {
 public:
  explicit EventClock(const Driver& driver) : driver_(driver) {}
  // Records the first event that times are measured from, on `stream`, and waits for it.
  Status start(CUstream stream);
  // Nothing may be in flight. A context must be current.
  ~EventClock();
  EventClock(const EventClock&) = delete;
  EventClock& operator=(const EventClock&) = delete;

  // Null where the driver has none to give.
  CUevent take();
  void give_back(CUevent event) { free_.push_back(event); }
  // When it happened; it has. Exact from event to event, but some microseconds late by the machine's clock, so that it
  // may lie ahead of now. May keep the event, and leaves another in its place for give_back().
  TimePoint time_of(CUevent& event);
  void abandon();

 private:
  const Driver& driver_;
  std::vector<CUevent> free_;
  CUevent base_ = nullptr;
  TimePoint base_time_{};
};

}  // namespace heddle::cuda
