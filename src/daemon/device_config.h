#pragma once

#include <optional>
#include <string>

#include "core/device_model.h"
#include "core/units.h"

namespace heddle::daemon {

// How a GPU's programs share it (docs/revocation.md).
enum class MpsMode : uint32_t {
  kOff,   // in time slices; no program's fault reaches another
  kOn,    // all at once, through MPS; one program's fault ends the work of all
  kAuto,  // through MPS, but for programs whose work cannot always be run again: these are in time slices beside it
};

inline const char* name_of(MpsMode mode) {
  return mode == MpsMode::kOff ? "off" : mode == MpsMode::kOn ? "on" : "auto";
}

// One device of the pool.
struct DeviceConfig {
  DeviceModel model;
  bool shared_faults = false;  // one program's fault ends every worker of the device, as under MPS
  uint32_t host_threads = 1;   // of one worker, that compute blocks
  std::string uuid;            // of a GPU: CUDA_VISIBLE_DEVICES for its workers and its keeper
  MpsMode mps = MpsMode::kOff;
  bool variables_stay = true;  // another process that loads the same modules has their variables where they were
  Bytes context = {};          // of a GPU: what one worker's context takes, measured; model.context_bytes is charged
};

// One [[gpu]] table: GPUs of this machine that belong to the pool.
struct GpuConfig {
  std::string uuid;               // which; empty: by `index`, or all
  std::optional<uint32_t> index;  // as the driver counts
  Bytes memory;                   // at most so much of each; 0: all that is free when heddled starts
  std::optional<Bytes> context;   // what a worker's context is charged; none: as measured
  MpsMode mps = MpsMode::kAuto;
  bool variables_stay = false;  // as DeviceConfig's: a second worker's are elsewhere, mostly
};

}  // namespace heddle::daemon
