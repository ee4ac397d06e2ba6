#include "policy/placement/rtf.h"

#include <algorithm>
#include <cmath>

#include "policy/text.h"

namespace heddle::policy {
namespace {

constexpr double kAlwaysLeft = 1.0 / 8;

Duration in_time(double nanoseconds) {
  return Duration(static_cast<int64_t>(nanoseconds));
}

double part_of(Duration busy, Duration time) {
  return static_cast<double>(busy.count()) / static_cast<double>(std::max(time, Duration(1)).count());
}

}  // namespace

double Rtf::Share::left() const {
  return std::max(expected - attained, expected * kAlwaysLeft);
}

void Rtf::opened(const Pool& pool) {
  devices_.resize(pool.size());
  for (uint64_t device = 0; device < pool.size(); ++device)
    devices_[device].weight = pool.spec({device}).weight / 1000.0;
}

void Rtf::job_opened(JobId job, const std::string& app) {
  jobs_[job].app = app;
}

void Rtf::assigned(const Request& request, DeviceId device) {
  GWtMin::assigned(request, device);
  Job& job = jobs_[request.job];
  if (std::find(job.devices.begin(), job.devices.end(), device) != job.devices.end()) return;
  job.devices.push_back(device);
  const History::Entry known = expected(request.job).value_or(history_.mean());
  Device& there = devices_[device.value];
  there.jobs[request.job] = {known.busy, 0, static_cast<uint64_t>(std::llround(utilization_of(known) * 1000))};
  sum_up(there);
}

void Rtf::served(JobId job, DeviceId device, const Service& since_last) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || since_last.busy <= Duration{}) return;
  Device& there = devices_[device.value];
  const double attained = static_cast<double>(since_last.busy.count()) * there.weight;
  found->second.busy += since_last.busy;
  found->second.attained += attained;
  const auto share = there.jobs.find(job);
  if (share == there.jobs.end()) return;
  share->second.attained += attained;
  sum_up(there);
}

void Rtf::computed(JobId job, Duration since_last) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || since_last < Duration{}) return;
  found->second.computed = found->second.computed.value_or(Duration{}) + since_last;
}

// A job that never had a device says nothing of its application.
void Rtf::job_ended(JobId id, Duration life) {
  GWtMin::job_ended(id, life);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  const Job& job = found->second;
  for (const DeviceId device : job.devices) {
    devices_[device.value].jobs.erase(id);
    sum_up(devices_[device.value]);
  }
  if (!job.devices.empty() && life > Duration{})
    history_.add(job.app, job.attained, part_of(job.busy, life), part_of(job.busy, job.computed.value_or(life)));
  jobs_.erase(found);
}

Placed Rtf::choose(const Request& request, std::span<const DeviceId> fitting, const Pool& pool) const {
  const auto known = expected(request.job);
  if (!known) return GWtMin::choose(request, fitting, pool);
  const DeviceId best = *std::min_element(fitting.begin(), fitting.end(), [&](DeviceId a, DeviceId b) {
    return load_with(a, known->busy) < load_with(b, known->busy);
  });
  return {best, text("least work expected on ", best, " (", in_time(load_with(best, 0)), " left, and ",
                     in_time(known->busy), " of this job)")};
}

std::optional<History::Entry> Rtf::expected(JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? std::nullopt : history_.of(found->second.app);
}

double Rtf::load_with(DeviceId device, double more) const {
  return (devices_[device.value].left + more) / devices_[device.value].weight;
}

void Rtf::sum_up(Device& device) {
  device.left = 0;
  device.utilization = 0;
  for (const auto& [job, share] : device.jobs) {
    device.left += share.left();
    device.utilization += share.utilization;
  }
}

}  // namespace heddle::policy
