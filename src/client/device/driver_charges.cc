#include "client/device/driver_charges.h"

#include <algorithm>

#include "client/link/arena.h"
#include "core/units.h"

namespace heddle::client {
namespace {

constexpr uint32_t kContextLocalBytes = 1024;  // a thread's, which come with a context
constexpr uint64_t kLeastCharge = 8ull << 20;  // smaller sums are not worth a segment

}  // namespace

DriverCharges::DriverCharges(const DeviceModel& model)
    : threads_(model.kind == DeviceKind::kCuda ? uint64_t{model.sms} * model.max_threads_per_sm : 0),
      local_(threads_ != 0 ? kContextLocalBytes : ~0u) {}

uint64_t DriverCharges::local_bytes(uint32_t bytes_a_thread) const {
  return threads_ * (std::max(bytes_a_thread, kContextLocalBytes) - kContextLocalBytes);
}

uint64_t DriverCharges::missing(Part part, uint32_t id, uint64_t bytes) const {
  if (!on_gpu()) return 0;
  uint64_t sum = 0, known = 0;
  for (const auto& [key, need] : needs_) {
    sum += need;
    if (key == Key{part, id}) known = need;
  }
  if (bytes <= known) return 0;
  sum += bytes - known;
  if (sum < kLeastCharge || sum <= charged_) return 0;
  return round_up(sum - charged_, kSegmentBytes);
}

void DriverCharges::cover(Part part, uint32_t id, uint64_t bytes, uint64_t room, uint64_t charged) {
  if (!on_gpu()) return;
  uint64_t& need = needs_[{part, id}];
  need = std::max(need, bytes);
  if (part == Part::kLocal)
    local_.store(static_cast<uint32_t>(need / threads_) + kContextLocalBytes, std::memory_order_relaxed);
  if (room == 0) return;
  rooms_.push_back(room);
  charged_ += charged;
}

std::vector<uint64_t> DriverCharges::clear() {
  needs_.clear();
  charged_ = 0;
  if (on_gpu()) local_.store(kContextLocalBytes, std::memory_order_relaxed);
  return std::exchange(rooms_, {});
}

}  // namespace heddle::client
