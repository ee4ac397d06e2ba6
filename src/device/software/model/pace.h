#pragma once

#include "core/device_model.h"
#include "core/occupancy.h"
#include "core/units.h"

// How long things take on a device of a model, slowed as the model says. Figures of a model that are 0 cost no time.
namespace heddle::software {

class Pace {
 public:
  explicit Pace(const DeviceModel& model) : model_(model) {}

  // Whether kernels, or copies over the bus, keep a pace at all.
  bool kernels() const { return model_.slowdown > 0; }
  bool copies() const { return model_.copy_slowdown > 0 && model_.copy_bytes_per_s > 0; }

  // A block that executed so many warp instructions and moved so many bytes of device memory, and of memory on the host
  // over the bus: the longest of these. Every warp slot of the device owns an equal share of its SM's issue rate and of
  // the memory's and the bus's bandwidth, used or not: a block takes as long on an idle device as on a full one, and
  // sharing shows as waiting for slots.
  Duration block(const SmShare& block, uint64_t warp_instructions, uint64_t bytes, uint64_t host_bytes = 0) const;
  // From handing a launch over to its first block.
  Duration launch_latency() const;
  // One copy engine at work.
  Duration bus_copy(uint64_t bytes) const;
  // So many multiplications and additions, fused in pairs, on all SMs.
  Duration arithmetic(double flops) const;
  // Reading or writing so many bytes of device memory with nothing else going on.
  Duration memory_access(uint64_t bytes) const;

 private:
  DeviceModel model_;
};

}  // namespace heddle::software
