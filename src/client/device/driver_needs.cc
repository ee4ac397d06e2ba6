#include "client/device/driver_needs.h"

namespace heddle::client {

using Part = DriverCharges::Part;

Done charge_module(VirtualDevice& device, const ProgramModule& module) {
  if (module.variable_bytes() <= DriverCharges::kNegligible) return {};
  return device.memory().charge_driver(Part::kVariables, module.id(), module.variable_bytes(), "a module's variables");
}

Done charge_kernel(VirtualDevice& device, const Function& function, const image::KernelInfo& info) {
  const DriverCharges& charges = device.memory().charges();
  if (!charges.covers_local(info.local_bytes)) {
    const bool large = info.local_bytes > DriverCharges::kContextLocalBytes;
    const std::string what =
        large ? stringf("local memory of kernel %s (%u bytes a thread)", info.name.c_str(), info.local_bytes)
              : std::string("what the program's earlier kernels and streams needed");
    HEDDLE_ANSWER(device.memory().charge_driver(Part::kLocal, 0, charges.local_bytes(info.local_bytes), what.c_str()));
  }
  if (function.module->info().allocates) {
    const auto heap = device.limits().get(cudaLimitMallocHeapSize);
    if (!heap) return tl::unexpected(heap.error());
    HEDDLE_ANSWER(
        device.memory().charge_driver(Part::kHeap, 0, *heap + DriverCharges::kHeapOverhead, "the heap of kernels"));
  }
  return charge_module(device, *function.module);
}

Done charge_stack(VirtualDevice& device, uint64_t bytes) {
  if (bytes > DeviceLimits::kMostStackBytes) return {};  // which is refused
  const DriverCharges& charges = device.memory().charges();
  return device.memory().charge_driver(Part::kLocal, 0, charges.local_bytes(static_cast<uint32_t>(bytes)),
                                       "the stack of all threads (cudaLimitStackSize)");
}

}  // namespace heddle::client
