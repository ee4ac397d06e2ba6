#include "simulator/shared_device.h"

#include <algorithm>
#include <cmath>

namespace heddle::simulator {

SharedDevice::SharedDevice(const DeviceModel& model)
    : warps_(double(model.sms) * model.max_warps_per_sm()),
      concurrent_(model.sharing == Sharing::kConcurrent),
      slowdown_(model.slowdown),
      copy_slowdown_(model.copy_slowdown) {}

size_t SharedDevice::find(JobIndex job) const {
  const auto found = std::find_if(works_.begin(), works_.end(), [&](const Work& each) { return each.job == job; });
  return static_cast<size_t>(found - works_.begin());
}

void SharedDevice::add(JobIndex job, Kind kind, Duration length, uint64_t warps, TimePoint now, double stretch) {
  advance(now);
  works_.push_back({job, kind, double(length.count()), 0, std::max<uint64_t>(1, warps), std::max(1.0, stretch)});
  if (kind == Kind::kCopy) {
    ++copies_;
  } else {
    ++kernels_;
    resident_ += works_.back().warps;
  }
}

Duration SharedDevice::remove(JobIndex job, TimePoint now) {
  advance(now);
  const size_t index = find(job);
  if (index == works_.size()) return {};
  const Work work = works_[index];
  works_.erase(works_.begin() + static_cast<ptrdiff_t>(index));
  if (work.kind == Kind::kCopy) {
    --copies_;
  } else {
    --kernels_;
    resident_ -= work.warps;
  }
  return Duration(std::llround(std::max(0.0, work.left) + work.withheld));
}

void SharedDevice::cut(JobIndex job, Duration to, TimePoint now) {
  advance(now);
  const size_t index = find(job);
  if (index == works_.size()) return;
  Work& work = works_[index];
  const double kept = std::min(work.left, double(to.count()));
  work.withheld += work.left - kept;
  work.left = kept;
}

Duration SharedDevice::left_of(JobIndex job, TimePoint now) {
  advance(now);
  const size_t index = find(job);
  if (index == works_.size()) return {};
  return Duration(std::llround(std::max(0.0, works_[index].left) + works_[index].withheld));
}

double SharedDevice::rate(const Work& work) const {
  if (work.kind == Kind::kCopy) return 1 / (copies_ * copy_slowdown_);
  if (!concurrent_) return 1 / (kernels_ * slowdown_ * work.stretch);
  return std::min(1.0, warps_ / double(resident_)) / (slowdown_ * work.stretch);
}

void SharedDevice::advance(TimePoint now) {
  const Duration passed = now - at_;
  at_ = now;
  if (passed <= Duration::zero()) return;
  if (kernels_ > 0) busy_ += passed;
  busy_of_all_ += double(passed.count()) * kernels_;
  for (Work& work : works_) {
    work.left -= double(passed.count()) * rate(work);
    work.on += passed;
  }
}

std::optional<SharedDevice::End> SharedDevice::next() const {
  std::optional<End> first;
  for (const Work& work : works_) {
    const TimePoint at = at_ + Duration(static_cast<int64_t>(std::ceil(std::max(0.0, work.left) / rate(work))));
    if (!first || at < first->at || (at == first->at && work.job < first->job)) first = End{at, work.job};
  }
  return first;
}

Duration SharedDevice::busy_of(JobIndex job, TimePoint now) {
  advance(now);
  const size_t index = find(job);
  return index == works_.size() || works_[index].kind != Kind::kKernels ? Duration{} : works_[index].on;
}

Duration SharedDevice::copied_of(JobIndex job, TimePoint now) {
  advance(now);
  const size_t index = find(job);
  return index == works_.size() || works_[index].kind != Kind::kCopy ? Duration{} : works_[index].on;
}

double SharedDevice::busy_of_all(TimePoint now) {
  advance(now);
  return busy_of_all_;
}

Duration SharedDevice::busy(TimePoint now) {
  advance(now);
  return busy_;
}

}  // namespace heddle::simulator
