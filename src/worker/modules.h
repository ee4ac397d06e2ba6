#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "image/module_info.h"
#include "worker/refusal.h"

namespace heddle::worker {

// Tells what a fat binary declares for devices of compute capability `arch` (90 for 9.0), in the order that the client,
// which knows the same model, counts in too.
using ModuleDescriber = std::function<Result<image::ModuleInfo>(std::span<const std::byte> fatbin, uint32_t arch)>;

// The session's program modules: known when heddled has sent them, loaded on the device at first use. Issuer's thread
// only; entries stay where they are.
class Modules {
 public:
  class Entry;
  struct LaunchTarget {
    device::Kernel* kernel;
    const image::KernelInfo* info;
  };

  Modules(device::Context& context, ModuleDescriber describe, uint32_t arch);
  ~Modules();

  // The next module of the session; ids count from 1. Copies what `memory` holds, because the tenant can write to it.
  Status add(uint32_t id, const Fd& memory, Bytes size);
  bool known(uint32_t id) const { return id - 1 < entries_.size(); }

  // All three load the module if that has not been done yet; `id` must be known. An index past the end is malformed.
  Checked<void> load(uint32_t id);
  Checked<LaunchTarget> kernel(uint32_t id, uint32_t index);
  Checked<device::Variable> variable(uint32_t id, uint32_t index);

 private:
  Checked<Entry*> loaded(uint32_t id);

  device::Context& context_;
  ModuleDescriber describe_;
  uint32_t arch_;
  std::vector<std::unique_ptr<Entry>> entries_;  // by id - 1
};

}  // namespace heddle::worker
