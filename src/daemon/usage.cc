#include "daemon/usage.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace heddle::daemon {
namespace {

using protocol::Usage;
using Field = uint64_t Usage::*;

constexpr Field kTotals[] = {&Usage::launches, &Usage::kernel_ns, &Usage::copies,     &Usage::copied_bytes,
                             &Usage::copy_ns,  &Usage::busy_ns,   &Usage::overrun_ns, &Usage::bursts};
constexpr Field kLargest[] = {&Usage::longest_burst_ns, &Usage::merged_burst_ns, &Usage::longest_gap_ns};

// Of the present task.
Usage since_account(const VirtualDevice& device) {
  const Usage now = usage_of(device);
  Usage part = difference(now, device.accounted);
  part.busy_since_ns = now.busy_since_ns;
  return part;
}

}  // namespace

Usage usage_of(const VirtualDevice& device) {
  Usage usage = device.accounted;
  if (device.control) device.control->read(usage);
  if (!device.worker) usage.busy_since_ns = 0;
  return usage;
}

Usage usage_of(const Session& session) {
  Usage sum;
  for (const VirtualDevice& device : session.devices) add(sum, usage_of(device));
  return sum;
}

Usage usage_of(const Job& job, Registry& registry) {
  Usage sum = job.usage;
  for (const SessionId id : job.sessions) {
    if (const Session* session = registry.find_session(id)) add(sum, usage_of(*session));
  }
  return sum;
}

std::vector<Usage> usage_by_device(const Registry& registry) {
  std::vector<Usage> sums;
  for (const DeviceState& device : registry.devices) sums.push_back(device.usage);
  for (const auto& [id, session] : registry.sessions) {
    for (const VirtualDevice& device : session.devices) {
      if (device.task && has_device(device.task->state)) add(sums[device.task->device.value], since_account(device));
    }
  }
  return sums;
}

Usage close_account(VirtualDevice& device, Registry& registry) {
  const Usage part = since_account(device);
  device.accounted = usage_of(device);
  if (has_device(device.task->state)) add(registry.devices[device.task->device.value].usage, part);
  return part;
}

void add(Usage& sum, const Usage& more) {
  for (const Field field : kTotals) sum.*field += more.*field;
  for (const Field field : kLargest) sum.*field = std::max(sum.*field, more.*field);
  if (more.busy_since_ns == 0) return;
  sum.busy_since_ns = sum.busy_since_ns == 0 ? more.busy_since_ns : std::min(sum.busy_since_ns, more.busy_since_ns);
}

Usage difference(const Usage& later, const Usage& earlier) {
  Usage rest;
  for (const Field field : kTotals) rest.*field = later.*field - std::min(later.*field, earlier.*field);
  return rest;
}

nlohmann::json usage_json(const Usage& usage, TimePoint now) {
  const auto now_ns = static_cast<uint64_t>(now.time_since_epoch().count());
  const uint64_t under_way = usage.busy_since_ns == 0 ? 0 : now_ns - std::min(now_ns, usage.busy_since_ns);
  return {{"busy_ns", usage.busy_ns + under_way},
          {"busy_now", usage.busy_since_ns != 0},
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
