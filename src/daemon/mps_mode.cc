#include "daemon/mps_mode.h"

namespace heddle::daemon {
namespace {

std::string obstacle_to_auto(const Config& config, const Mps& mps) {
  const DurabilityConfig& durability = config.durability;
  if (!mps.installed()) return "nvidia-cuda-mps-control is not installed";
  if (durability.space().value == 0 || durability.protects_from() != Duration::zero())
    return "[durability] has work lost with another program's fault there (level \"auto\" or \"full\", and undo)";
  if (config.dispatch.bounds_batch)
    return "[dispatch] policy " + config.dispatch.policy + " needs it for all programs (mps = \"on\")";
  return "";
}

}  // namespace

Status start_mps(Shared& shared, Mps& mps, DeviceId device) {
  DeviceConfig& config = shared.registry.devices[device.value].config;
  if (config.mps == MpsMode::kOff) return {};
  std::string obstacle = config.mps == MpsMode::kAuto ? obstacle_to_auto(shared.config, mps) : "";
  if (obstacle.empty()) {
    Status started = mps.start(device, config.uuid);
    if (started || config.mps == MpsMode::kOn) return started;
    obstacle = started.error().text;
  }
  shared.log->warn("device {} runs programs in time slices, and not through MPS (mps = \"auto\"): {}", device.value,
                   obstacle);
  config.mps = MpsMode::kOff;
  return {};
}

}  // namespace heddle::daemon
