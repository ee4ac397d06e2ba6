#pragma once

#include "client/device/virtual_device.h"
#include "client/registry.h"

// When what the driver takes for a program is charged (device/driver_charges.h): before the record that makes it do so.
// Without the device's lock. cudaErrorMemoryAllocation where the program's budget does not allow it.
namespace heddle::client {

// The worker loads the module: its variables.
Done charge_module(VirtualDevice& device, const ProgramModule& module);

// A kernel is launched: its local memory, its module's variables, the heap where the module allocates.
Done charge_kernel(VirtualDevice& device, const Function& function, const image::KernelInfo& info);

// The same where there may be anything to charge, which one load and three compares tell. `function` is prepared.
inline Done charge_launch(VirtualDevice& device, const Function& function) {
  const DriverCharges& charges = device.memory().charges();
  const image::KernelInfo& info = *function.info.load(std::memory_order_acquire);
  const ProgramModule& module = *function.module;
  const bool covered =
      charges.covers_local(info.local_bytes) &&
      (!charges.on_gpu() || (!module.info().allocates && module.variable_bytes() <= DriverCharges::kNegligible));
  return covered ? Done{} : charge_kernel(device, function, info);
}

// Every thread has so much stack from now on.
Done charge_stack(VirtualDevice& device, uint64_t bytes);

}  // namespace heddle::client
