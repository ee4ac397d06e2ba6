#include "daemon/usage.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace heddle::daemon {
namespace {

using protocol::Usage;
using Field = uint64_t Usage::*;

constexpr Field kTotals[] = {&Usage::launches,     &Usage::kernel_ns,      &Usage::copies,
                             &Usage::copied_bytes, &Usage::copy_ns,        &Usage::busy_ns,
                             &Usage::overrun_ns,   &Usage::unprotected_ns, &Usage::bursts};
constexpr Field kLargest[] = {&Usage::longest_burst_ns, &Usage::merged_burst_ns, &Usage::longest_gap_ns};

uint64_t nanoseconds(Duration duration) {
  return static_cast<uint64_t>(std::max(duration, Duration::zero()).count());
}

uint64_t added(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

}  // namespace

// The worker may have written anything: totals never fall, no task is at work for longer than it has had its device,
// and nothing began before that.
Usage usage_done(const VirtualDevice& device, TimePoint now) {
  Usage usage = device.accounted;
  if (device.control) device.control->read(usage);
  for (const Field field : kTotals) usage.*field = std::max(usage.*field, device.accounted.*field);
  const bool placed = device.task && has_device(device.task->state);
  const uint64_t most = placed ? nanoseconds(now - device.task->granted) : 0;
  for (const Field field : {&Usage::busy_ns, &Usage::copy_ns, &Usage::unprotected_ns})
    usage.*field = std::min(usage.*field, added(device.accounted.*field, most));
  if (!device.task || device.task->state != TaskState::kRunning) usage.busy_since_ns = 0;  // nobody serves it
  if (usage.busy_since_ns != 0)
    usage.busy_since_ns = std::max(usage.busy_since_ns, nanoseconds(device.task->granted.time_since_epoch()));
  return usage;
}

Usage usage_of(const VirtualDevice& device, TimePoint now) {
  Usage usage = usage_done(device, now);
  if (usage.busy_since_ns == 0) return usage;
  const uint64_t now_ns = nanoseconds(now.time_since_epoch());
  const uint64_t under_way = now_ns - std::min(now_ns, usage.busy_since_ns);
  const uint64_t most = added(device.accounted.busy_ns, nanoseconds(now - device.task->granted));
  usage.busy_ns = std::min(added(usage.busy_ns, under_way), most);
  return usage;
}

Usage usage_of(const Session& session, TimePoint now) {
  Usage sum;
  for (const VirtualDevice& device : session.devices) add(sum, usage_of(device, now));
  return sum;
}

Usage usage_of(const Job& job, Registry& registry, TimePoint now) {
  Usage sum = job.usage;
  for (const SessionId id : job.sessions) {
    if (const Session* session = registry.find_session(id)) add(sum, usage_of(*session, now));
  }
  return sum;
}

std::vector<Usage> usage_by_device(const Registry& registry, TimePoint now) {
  std::vector<Usage> sums;
  for (const DeviceState& device : registry.devices) sums.push_back(device.usage);
  for (const auto& [id, session] : registry.sessions) {
    for (const VirtualDevice& device : session.devices) {
      if (!device.task || !has_device(device.task->state)) continue;
      const Usage total = usage_of(device, now);
      Usage part = difference(total, device.accounted);
      part.busy_since_ns = total.busy_since_ns;
      add(sums[device.task->device.value], part);
    }
  }
  return sums;
}

Usage close_account(VirtualDevice& device, Registry& registry, TimePoint now) {
  const Usage total = usage_done(device, now);
  const Usage part = difference(total, std::exchange(device.accounted, total));
  device.accounted.busy_since_ns = 0;
  if (has_device(device.task->state)) add(registry.devices[device.task->device.value].usage, part);
  return part;
}

void add(Usage& sum, const Usage& more) {
  for (const Field field : kTotals) sum.*field = added(sum.*field, more.*field);
  for (const Field field : kLargest) sum.*field = std::max(sum.*field, more.*field);
  sum.busy_since_ns = std::max(sum.busy_since_ns, more.busy_since_ns);
}

Usage difference(const Usage& later, const Usage& earlier) {
  Usage rest;
  for (const Field field : kTotals) rest.*field = later.*field - std::min(later.*field, earlier.*field);
  return rest;
}

policy::Service service_of(const Usage& usage) {
  const auto time = [](uint64_t nanoseconds) { return Duration(static_cast<int64_t>(nanoseconds)); };
  return {.busy = time(usage.busy_ns),
          .copies = time(usage.copy_ns),
          .bursts = usage.bursts,
          .longest_burst = time(usage.longest_burst_ns),
          .merged_burst = time(usage.merged_burst_ns),
          .longest_gap = time(usage.longest_gap_ns)};
}

nlohmann::json usage_json(const Usage& usage, uint64_t& told_busy_ns) {
  told_busy_ns = std::max(told_busy_ns, usage.busy_ns);
  return {{"busy_ns", told_busy_ns},
          {"busy_now", usage.busy_since_ns != 0},
          {"unprotected_ns", usage.unprotected_ns},
          {"copy_ns", usage.copy_ns},
          {"launches", usage.launches},
          {"kernel_ns", usage.kernel_ns},
          {"copies", usage.copies},
          {"copied_bytes", usage.copied_bytes},
          {"bursts", usage.bursts},
          {"longest_burst_ns", usage.longest_burst_ns},
          {"merged_burst_ns", usage.merged_burst_ns},
          {"longest_gap_ns", usage.longest_gap_ns}};
}

}  // namespace heddle::daemon
