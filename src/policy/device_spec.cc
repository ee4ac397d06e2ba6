#include "policy/device_spec.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace heddle::policy {
namespace {

DeviceSpec spec_of(DeviceId id, const DeviceModel& model) {
  DeviceSpec spec;
  spec.id = id;
  spec.name = model.name;
  spec.model = model.model;
  spec.memory = Bytes{model.memory_bytes};
  spec.context_memory = Bytes{model.context_bytes};
  spec.sms = model.sms;
  spec.sm = sm_of(model);
  return spec;
}

double speed_of(const DeviceModel& model) {
  const double slowdown = model.slowdown > 0 ? model.slowdown : 1;
  return static_cast<double>(model.sms) * model.clock_khz * std::max(1u, model.issue_per_cycle) / slowdown;
}

}  // namespace

std::vector<DeviceSpec> specs_of(std::span<const DeviceModel> models) {
  std::map<std::string, double> fastest;
  for (const DeviceModel& model : models) {
    double& most = fastest[model.model];
    most = std::max(most, speed_of(model));
  }
  std::vector<DeviceSpec> specs;
  for (const DeviceModel& model : models) {
    DeviceSpec& spec = specs.emplace_back(spec_of(DeviceId{specs.size()}, model));
    const double part = speed_of(model) / fastest[spec.model];
    if (part > 0) spec.weight = std::max(1u, static_cast<uint32_t>(std::lround(1000 * part)));
  }
  return specs;
}

}  // namespace heddle::policy
