#include "worker/host_part.h"

#include <algorithm>
#include <set>

#include "image/parameter_words.h"

namespace heddle::worker {
namespace {

// Of a GPU, which does not say: PCI Express 4.0 of 16 lanes. Where it is faster a kernel waits for somewhat longer.
constexpr double kBusBytesPerSecond = 25e9;
constexpr double kLongestNs = 1e18;

image::KernelEffects nothing_known() {
  image::KernelEffects effects;
  effects.read = ~uint64_t{0};
  return effects;
}

// As the software device has it: the bus is slowed as the kernel is that uses it.
Duration over_bus(double bytes, const DeviceModel& model) {
  const bool software = model.kind == DeviceKind::kSoftware;
  const double rate = model.copy_bytes_per_s > 0 ? static_cast<double>(model.copy_bytes_per_s) : kBusBytesPerSecond;
  const double ns = bytes / rate * (software ? model.slowdown : 1) * 1e9;
  return Duration(static_cast<int64_t>(std::min(ns, kLongestNs)));
}

}  // namespace

Duration HostPart::time_of(const KernelUse& kernel, std::span<const std::byte> parameters,
                           const DeviceModel& model) const {
  static const image::KernelEffects unknown = nothing_known();
  std::set<const Segments::Range*> read, written;
  image::each_parameter_word(kernel.parameters, kernel.effects ? *kernel.effects : unknown, parameters,
                             [&](const image::ParameterWord& word) {
                               if (const auto* range = segments_.find(word.value))
                                 (word.read ? read : written).insert(range);
                             });
  uint64_t bytes = 0;
  for (const auto* each : read) bytes += kReads * each->bytes;
  for (const auto* each : written) bytes += read.contains(each) ? 0 : each->bytes;
  return over_bus(static_cast<double>(bytes), model);
}

}  // namespace heddle::worker
