#include "policy/placement/mgb_sm.h"

#include <algorithm>
#include <utility>

#include "policy/placement/reasons.h"
#include "policy/text.h"

namespace heddle::policy {
namespace {

bool same_sms(const DeviceSpec& a, const DeviceSpec& b) {
  return a.sms == b.sms && a.sm == b.sm;
}

// What a task asks of a device's SMs: `count` blocks, none where the device would not start any.
struct Asked {
  SmShare block;
  uint64_t count = 0;
};

Asked asked(const ComputeNeed& need, const DeviceSpec& device) {
  const auto block = block_share(need, device);
  if (!block) return {};
  return {*block, resident(need, device).blocks};
}

std::string why_none_fits(const Request& request, const Asked& ask, size_t with_memory, const Pool& pool) {
  std::string why = text(with_memory, " devices have ", request.memory, " free, none has room on its SMs for ",
                         ask.count, " blocks of ", ask.block.warps, " warps");
  if (request.closed) append(why, "; device ", *request.closed, " is reserved for an older request");
  append(why, " (", pool.devices_of(request.model).size(), " devices in all)");
  return why;
}

}  // namespace

void MgbSm::opened(const Pool& pool) {
  for (uint64_t i = 0; i < pool.size(); ++i) {
    const DeviceSpec& spec = pool.spec({i});
    maps_.emplace_back(spec);
    const auto first =
        std::find_if(alike_.begin(), alike_.end(), [&](DeviceId other) { return same_sms(pool.spec(other), spec); });
    alike_.push_back(first == alike_.end() ? spec.id : *first);
  }
}

Answer MgbSm::place(const Request& request, const Pool& pool) const {
  const auto devices = candidates(request.model, pool);
  Asked ask;
  std::optional<DeviceId> asked_for;
  size_t with_memory = 0;
  for (const DeviceId device : devices) {
    if (!pool.fits(request, device)) continue;
    ++with_memory;
    if (asked_for != alike_[device.value]) {
      asked_for = alike_[device.value];
      ask = asked(request.compute, pool.spec(device));
    }
    if (!maps_[device.value].fits(ask.block, ask.count)) continue;
    return Placed{
        device, text("device ", device, " is the first with ", pool.need(request, device), " free (", pool.free(device),
                     ") and room on its SMs for ", ask.count, " blocks of ", ask.block.warps, " warps")};
  }
  if (with_memory == 0) return NotNow{why_no_memory(request, devices, pool)};
  const WaitCause cause = is_kept_for_another(request, pool) ? WaitCause::kReservation : WaitCause::kSms;
  return NotNow{why_none_fits(request, ask, with_memory, pool), cause};
}

// Whether the device that is closed to the request has its memory and room for it.
bool MgbSm::is_kept_for_another(Request request, const Pool& pool) const {
  const auto closed = std::exchange(request.closed, std::nullopt);
  if (!closed || !pool.fits(request, *closed)) return false;
  const Asked ask = asked(request.compute, pool.spec(*closed));
  return maps_[closed->value].fits(ask.block, ask.count);
}

MgbSm::Dealt MgbSm::deal(const ComputeNeed& need, DeviceId device, const Pool& pool) {
  const Asked ask = asked(need, pool.spec(device));
  return {device, ask.block,
          ask.count == 0 ? std::vector<SmMap::Share>{} : maps_[device.value].add(ask.block, ask.count)};
}

void MgbSm::task_began(TaskId task, const ComputeNeed& need, DeviceId device, const Pool& pool) {
  tasks_[task] = deal(need, device, pool);
}

void MgbSm::compute_changed(TaskId task, const ComputeNeed& need, const Pool& pool) {
  Dealt& dealt = tasks_.at(task);
  maps_[dealt.device.value].remove(dealt.block, dealt.shares);
  dealt = deal(need, dealt.device, pool);
}

void MgbSm::task_ended(TaskId task) {
  const Dealt& dealt = tasks_.at(task);
  maps_[dealt.device.value].remove(dealt.block, dealt.shares);
  tasks_.erase(task);
}

}  // namespace heddle::policy
