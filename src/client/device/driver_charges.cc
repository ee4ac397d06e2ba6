#include "client/device/driver_charges.h"

#include <algorithm>

#include "client/link/arena.h"
#include "core/units.h"

namespace heddle::client {
namespace {

constexpr uint64_t kLeastCharge = 8ull << 20;  // smaller sums are not worth a segment

}  // namespace

DriverCharges::DriverCharges(const DeviceModel& model)
    : threads_(model.kind == DeviceKind::kCuda ? uint64_t{model.sms} * model.max_threads_per_sm : 0),
      beyond_local_(~0u) {
  set_covered(true);
}

uint64_t DriverCharges::local_bytes(uint32_t bytes_a_thread) const {
  return threads_ * (std::max(bytes_a_thread, kContextLocalBytes) - kContextLocalBytes);
}

// Of all parts, where that of `key` is no less than `bytes`.
uint64_t DriverCharges::sum(Key key, uint64_t bytes) const {
  uint64_t sum = 0, known = 0;
  for (const auto& [of, need] : needs_) {
    sum += need;
    if (of == key) known = need;
  }
  return sum + std::max(bytes, known) - known;
}

uint64_t DriverCharges::missing(Part part, uint32_t id, uint64_t bytes) const {
  if (!on_gpu()) return 0;
  const uint64_t all = sum({part, id}, bytes);
  if (all < kLeastCharge || all <= charged_) return 0;
  return round_up(all - charged_, kSegmentBytes);
}

void DriverCharges::cover(Part part, uint32_t id, uint64_t bytes, uint64_t segment, uint64_t charged) {
  if (!on_gpu()) return;
  uint64_t& need = needs_[{part, id}];
  need = std::max(need, bytes);
  if (segment != 0) segments_.push_back(segment);
  charged_ += charged;
  set_covered(true);
}

std::vector<uint64_t> DriverCharges::lapse() {
  charged_ = 0;
  set_covered(sum({Part::kLocal, 0}, 0) < kLeastCharge);
  return std::exchange(segments_, {});
}

void DriverCharges::forget() {
  needs_.clear();
  segments_.clear();
  charged_ = 0;
  set_covered(true);
}

void DriverCharges::set_covered(bool all) {
  if (!on_gpu()) return;
  const auto local = needs_.find({Part::kLocal, 0});
  const uint64_t beyond_context = local == needs_.end() ? 0 : local->second / threads_;
  const uint32_t covered = kContextLocalBytes + static_cast<uint32_t>(beyond_context);
  beyond_local_.store(all ? covered + 1 : 0, std::memory_order_relaxed);
}

}  // namespace heddle::client
