#include "core/device_model.h"

#include <cstdio>
#include <string>

#include "core/units.h"

namespace heddle {
namespace {

DeviceModel preset(const char* name, const char* model) {
  DeviceModel device;
  std::snprintf(device.name, sizeof device.name, "%s", name);
  std::snprintf(device.model, sizeof device.model, "%s", model);
  device.slowdown = device.copy_slowdown = 1;
  device.max_threads_per_sm = 2048;
  device.max_blocks_per_sm = 32;
  device.registers_per_sm = 65536;
  device.issue_per_cycle = 4;
  return device;
}

// Tesla P100-SXM2-16GB, as NVIDIA's Pascal whitepaper gives it. Two warp schedulers of 32 lanes an SM.
DeviceModel p100() {
  DeviceModel device = preset("heddle software P100", "P100");
  device.memory_bytes = 16 * kGiB;
  device.sms = 56;
  device.shared_bytes_per_sm = 65536;
  device.shared_bytes_per_block_optin = 49152;
  device.clock_khz = 1480500;
  device.memory_clock_khz = 715000;
  device.memory_bus_bits = 4096;
  device.l2_bytes = 4 << 20;
  device.issue_per_cycle = 2;
  device.memory_bytes_per_s = 732'000'000'000;
  device.copy_bytes_per_s = 12'000'000'000;
  device.launch_latency_ns = 5000;
  return device;
}

// Tesla V100-SXM2-16GB, Volta whitepaper.
DeviceModel v100() {
  DeviceModel device = preset("heddle software V100", "V100");
  device.memory_bytes = 16 * kGiB;
  device.sms = 80;
  device.shared_bytes_per_sm = 98304;
  device.shared_bytes_per_block_optin = 98304;
  device.clock_khz = 1530000;
  device.memory_clock_khz = 877000;
  device.memory_bus_bits = 4096;
  device.l2_bytes = 6 << 20;
  device.memory_bytes_per_s = 900'000'000'000;
  device.copy_bytes_per_s = 12'000'000'000;
  device.launch_latency_ns = 5000;
  return device;
}

// H200 SXM: Hopper whitepaper and what a card reports (132 SMs, 141 GB, 60 MB of L2); copies as HARDWARE.md measured.
DeviceModel h200() {
  DeviceModel device = preset("heddle software H200", "H200");
  device.memory_bytes = 140 * kGiB;
  device.sms = 132;
  device.shared_bytes_per_sm = 233472;
  device.shared_bytes_per_block_optin = 232448;
  device.shared_bytes_reserved_per_block = 1024;
  device.clock_khz = 1980000;
  device.memory_clock_khz = 3201000;
  device.memory_bus_bits = 6144;
  device.l2_bytes = 60 << 20;
  device.memory_bytes_per_s = 4'800'000'000'000;
  device.copy_bytes_per_s = 55'000'000'000;
  device.launch_latency_ns = 3200;
  return device;
}

struct Preset {
  std::string_view name;
  DeviceModel (*make)();
};

constexpr Preset kPresets[] = {{"P100", p100}, {"V100", v100}, {"H200", h200}};

}  // namespace

Result<DeviceModel> device_preset(std::string_view name) {
  std::string known;
  for (const Preset& candidate : kPresets) {
    if (candidate.name == name) return candidate.make();
    known += known.empty() ? "" : ", ";
    known += candidate.name;
  }
  return fail(ErrorCode::kNotFound, "no device model '%.*s'; the presets are %s", static_cast<int>(name.size()),
              name.data(), known.c_str());
}

std::vector<std::string_view> device_preset_names() {
  std::vector<std::string_view> names;
  for (const Preset& candidate : kPresets) names.push_back(candidate.name);
  return names;
}

}  // namespace heddle
