#include "policy/job_admission.h"

#include <algorithm>

namespace heddle::policy {
namespace {

constexpr uint32_t kWaitingPerDevice = 4;
constexpr uint32_t kBoundWaitingPerDevice = 2;
constexpr uint32_t kTasksPerDevice = 5;  // always at work, and as large as it
constexpr double kMostOfLeased = 0.95;

constexpr Duration kStartup = std::chrono::seconds(1);
constexpr Duration kFirstDuty = std::chrono::milliseconds(250);
constexpr Duration kEachDuty = std::chrono::seconds(1);
constexpr Duration kStartupLook = std::chrono::milliseconds(100);  // while a started job has no task yet
constexpr double kNewPart = 0.5;                                   // of the latest duty in the mean

}  // namespace

void JobAdmission::started(JobId job, TimePoint now) {
  ++running_;
  silent_[job] = now;
}

void JobAdmission::announced(JobId job) {
  silent_.erase(job);
}

void JobAdmission::ended(JobId job) {
  --running_;
  silent_.erase(job);
}

void JobAdmission::needed(Bytes host_memory) {
  largest_ = std::max(largest_, host_memory);
}

void JobAdmission::look(const PoolUse& use, TimePoint now) {
  // What was while nobody looked is unknown, and so is what a heddled measured that was started anew since.
  const bool begins = !looked_ || now - *looked_ >= 2 * kEachDuty || use.busy_ns < busy_then_ns_;
  if (!begins) had_ns_ += static_cast<double>((now - *looked_).count()) * (use_.tasks + use.tasks) / 2;
  use_ = use;
  looked_ = now;
  if (!begins && now < duty_due()) return;
  if (!begins && had_ns_ > 0) {
    const double duty = std::clamp((use.busy_ns - busy_then_ns_) / had_ns_, 0.0, 1.0);
    duty_ = duty_ ? *duty_ + kNewPart * (duty - *duty_) : duty;
  }
  since_ = now;
  busy_then_ns_ = use.busy_ns;
  had_ns_ = 0;
}

bool JobAdmission::admits(TimePoint now) const {
  if (running_ == 0) return true;
  const uint32_t most_waiting = limits_.binds_jobs ? kBoundWaitingPerDevice : kWaitingPerDevice;
  return within_limits() && jobs_that_wait(now) < most_waiting * use_.devices && has_spare_capacity();
}

TimePoint JobAdmission::next(TimePoint now) const {
  const bool starting =
      std::any_of(silent_.begin(), silent_.end(), [&](const auto& job) { return now - job.second < kStartup; });
  const TimePoint due = looked_ ? std::max(now, duty_due()) : now;
  return starting ? std::min(due, now + kStartupLook) : due;
}

uint32_t JobAdmission::jobs_that_wait(TimePoint now) const {
  uint32_t waiting = use_.waiting;
  for (const auto& [job, since] : silent_) waiting += now - since < kStartup ? 1 : 0;
  return waiting;
}

bool JobAdmission::has_spare_capacity() const {
  if (use_.tasks < kTasksPerDevice * use_.devices) return true;
  const double duty = duty_.value_or(1);
  const double devices_used = duty * use_.tasks;
  switch (use_.sharing) {
    case DeviceSharing::kConcurrent:
      return duty * static_cast<double>(use_.warps) < kTasksPerDevice * static_cast<double>(use_.max_warps);
    case DeviceSharing::kTimeSliced:
      return devices_used < kTasksPerDevice * use_.devices;
    case DeviceSharing::kLeased:
      return devices_used < kMostOfLeased * use_.devices;
  }
  return false;
}

bool JobAdmission::within_limits() const {
  if (running_ >= limits_.most) return false;
  return limits_.host_memory == Bytes{} || largest_.value == 0 ||
         running_ + 1 <= limits_.host_memory.value / largest_.value;
}

TimePoint JobAdmission::duty_due() const {
  return since_ + (duty_ ? kEachDuty : kFirstDuty);
}

}  // namespace heddle::policy
