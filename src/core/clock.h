#pragma once

#include "core/units.h"

namespace heddle {

// The current time, as an object, so that tests and the simulator can set it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

// CLOCK_MONOTONIC, the same in every process of the machine.
class MonotonicClock : public Clock {
 public:
  TimePoint now() const override;
};

// Stands still until it is told to move.
class ManualClock : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

}  // namespace heddle
