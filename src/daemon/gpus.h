#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/config.h"

// The machine's GPUs. heddled makes no CUDA call: `heddle-keeper --list` looks, and a line of it is one GPU.
namespace heddle::daemon {

struct FoundGpu {
  std::string uuid, pci;
  DeviceModel model;            // memory_bytes: all of the card's
  Bytes free;                   // by nobody used, once the keeper is there
  Bytes context;                // of one worker, measured
  bool virtual_memory = false;  // it can do what heddle needs
  uint64_t driver = 0;          // 13000 for CUDA 13.0
};

// Lines of `heddle-keeper --list`. kCorrupt with the line where one makes no sense.
Result<std::vector<FoundGpu>> parse_gpu_list(std::string_view text);

// What `keeper --list` prints. An error where there is no driver, with the keeper's own words.
Result<std::string> list_gpus(const std::string& keeper);

// Adds to the pool what the [[gpu]] tables ask for: kNotFound for a GPU that is named and not there, kNotSupported for
// one that heddle cannot use, kOutOfMemory for one that is full. Without [[gpu]] and [[device]] tables: all GPUs that
// can be used take the software devices' place; kNotFound where there is none, and then the software devices stay.
Status add_gpus(Config& config, const std::vector<FoundGpu>& found);

// Whether the configuration leaves space for GPUs: it names some, or names no devices at all.
bool wants_gpus(const Config& config);

}  // namespace heddle::daemon
