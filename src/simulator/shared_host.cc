#include "simulator/shared_host.h"

#include <algorithm>
#include <cmath>

namespace heddle::simulator {

double SharedHost::rate() const {
  return std::min(1.0, double(processors_) / double(works_.size()));
}

void SharedHost::advance(TimePoint now) {
  if (works_.empty()) {
    computed_ = 0;
  } else {
    computed_ += double((now - at_).count()) * rate();
  }
  at_ = now;
}

void SharedHost::add(JobIndex job, Duration length, TimePoint now) {
  advance(now);
  works_.push({computed_ + double(length.count()), ++version_, job});
}

std::optional<TimePoint> SharedHost::next() const {
  if (works_.empty()) return {};
  const double left = std::max(0.0, works_.top().done_at - computed_);
  return at_ + Duration(static_cast<int64_t>(std::ceil(left / rate())));
}

JobIndex SharedHost::take(TimePoint now) {
  advance(now);
  const JobIndex job = works_.top().job;
  works_.pop();
  ++version_;
  return job;
}

}  // namespace heddle::simulator
