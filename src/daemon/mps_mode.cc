#include "daemon/mps_mode.h"

namespace heddle::daemon {
namespace {

constexpr uint32_t kVolta = 7;  // before it, MPS' clients shared their addresses, and one could write another's memory

std::string obstacle_to_auto(const Config& config, const DeviceModel& model, const Mps& mps) {
  const DurabilityConfig& durability = config.durability;
  if (!mps.installed()) return "nvidia-cuda-mps-control is not installed";
  if (durability.space().value == 0 || durability.protects_from() != Duration::zero())
    return "[durability] has work lost with another program's fault there (level \"auto\" or \"full\", and undo)";
  if (model.capability_major < kVolta)
    return stringf("MPS keeps programs' memory apart from compute capability %u.0 on, and this GPU has %u.%u", kVolta,
                   model.capability_major, model.capability_minor);
  if (config.worker_uids.count != 0)
    return "worker_uids has each worker run as a user of its own, and MPS takes the clients of one";
  if (config.dispatch.bounds_batch)
    return "[dispatch] policy " + config.dispatch.policy + " needs it for all programs (mps = \"on\")";
  return "";
}

}  // namespace

Status start_mps(Shared& shared, Mps& mps, DeviceId device) {
  DeviceConfig& config = shared.registry.devices[device.value].config;
  if (config.mps == MpsMode::kOff) return {};
  std::string obstacle = config.mps == MpsMode::kAuto ? obstacle_to_auto(shared.config, config.model, mps) : "";
  if (obstacle.empty()) {
    Status started = mps.start(device, config.uuid);
    if (started || config.mps == MpsMode::kOn) return started;
    shared.log->warn("the MPS of device {} does not start: {}", device.value, started.error().text);
    obstacle = "it does not start";
  }
  shared.log->info("device {} runs programs in time slices, and not through MPS (mps = \"auto\"): {}", device.value,
                   obstacle);
  config.mps = MpsMode::kOff;
  return {};
}

}  // namespace heddle::daemon
