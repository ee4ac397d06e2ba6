#include "device/software/model/pace.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle::software {
namespace {

// `work` at `rate` a second; nothing where there is no rate.
Duration at_rate(double work, double rate, double slowdown) {
  if (rate <= 0 || slowdown <= 0) return Duration::zero();
  double ns = work / rate * slowdown * 1e9;
  constexpr auto kLongest = static_cast<double>(std::numeric_limits<int64_t>::max()) / 4;
  return Duration(static_cast<int64_t>(std::llround(std::min(ns, kLongest))));
}

}  // namespace

// The bus is slowed as the kernel is that uses it, not as copies are.
Duration Pace::block(const SmShare& block, uint64_t warp_instructions, uint64_t bytes, uint64_t host_bytes) const {
  double issue_rate = 1e3 * model_.clock_khz * model_.issue_per_cycle;  // of an SM
  double memory_rate = static_cast<double>(model_.memory_bytes_per_s) / model_.sms;
  double bus_rate = static_cast<double>(model_.copy_bytes_per_s) / model_.sms;
  double share = static_cast<double>(block.warps) / model_.max_warps_per_sm();
  return std::max({at_rate(static_cast<double>(warp_instructions), issue_rate * share, model_.slowdown),
                   at_rate(static_cast<double>(bytes), memory_rate * share, model_.slowdown),
                   at_rate(static_cast<double>(host_bytes), bus_rate * share, model_.slowdown)});
}

Duration Pace::launch_latency() const {
  return at_rate(model_.launch_latency_ns, 1e9, model_.slowdown);
}

Duration Pace::bus_copy(uint64_t bytes) const {
  return at_rate(static_cast<double>(bytes), static_cast<double>(model_.copy_bytes_per_s), model_.copy_slowdown);
}

Duration Pace::arithmetic(double flops) const {
  const double rate = 2.0 * model_.warp_size * 1e3 * model_.clock_khz * model_.issue_per_cycle * model_.sms;
  return at_rate(flops, rate, model_.slowdown);
}

Duration Pace::memory_access(uint64_t bytes) const {
  return at_rate(static_cast<double>(bytes), static_cast<double>(model_.memory_bytes_per_s), model_.slowdown);
}

}  // namespace heddle::software
