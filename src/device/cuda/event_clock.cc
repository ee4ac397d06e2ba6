#include "device/cuda/event_clock.h"

#include <utility>

#include "core/clock.h"

namespace heddle::cuda {
namespace {

constexpr float kLongest = 4000;  // milliseconds that are measured from one event

}  // namespace

Status EventClock::start(CUstream stream) {
  HEDDLE_TRY(driver_.check(driver_.cuEventCreate(&base_, CU_EVENT_DEFAULT), "cuEventCreate"));
  HEDDLE_TRY(driver_.check(driver_.cuEventRecord(base_, stream), "cuEventRecord"));
  HEDDLE_TRY(driver_.check(driver_.cuEventSynchronize(base_), "cuEventSynchronize"));
  base_time_ = MonotonicClock().now();
  return {};
}

EventClock::~EventClock() {
  for (const CUevent event : free_) driver_.cuEventDestroy(event);
  if (base_) driver_.cuEventDestroy(base_);
}

CUevent EventClock::take() {
  CUevent event = nullptr;
  if (free_.empty()) {
    driver_.cuEventCreate(&event, CU_EVENT_DEFAULT);
    return event;
  }
  event = free_.back();
  free_.pop_back();
  return event;
}

TimePoint EventClock::time_of(CUevent& event) {
  float passed = 0;
  if (driver_.cuEventElapsedTime(&passed, base_, event) != CUDA_SUCCESS) return MonotonicClock().now();
  const TimePoint time = base_time_ + Duration(static_cast<int64_t>(double{passed} * 1e6));
  if (passed > kLongest) {
    std::swap(base_, event);
    base_time_ = time;
  }
  return time;
}

void EventClock::abandon() {
  free_.clear();
  base_ = nullptr;
}

}  // namespace heddle::cuda
