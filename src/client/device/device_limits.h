#pragma once

#include <array>

#include "client/device/device_task.h"

namespace heddle::client {

// What cudaDeviceSetLimit sets. Any thread, but for reset() and uses().
class DeviceLimits {
 public:
  DeviceLimits(RingPort& ring, DeviceTask& task) : ring_(ring), task_(task) {}

  static constexpr size_t kMostStackBytes = 512 * kKiB;  // what local memory can be

  // cudaErrorUnsupportedLimit; cudaErrorInvalidValue where it is too much, or too late for heap and printf.
  Done set(cudaLimit limit, size_t value);
  Answer<size_t> get(cudaLimit limit);
  bool are_default();
  // Under the lock: as cudaDeviceReset has it.
  Done reset();
  // Under the lock: a kernel of a module that declares them is launched.
  void uses(bool malloc, bool printf) {
    uses_malloc_ |= malloc;
    uses_printf_ |= printf;
  }

 private:
  // By cudaLimit: stack, printf, heap, and those that have no effect here.
  using Values = std::array<size_t, 7>;
  static constexpr Values kDefaults{1024, protocol::kDefaultPrintBytes, 8 * kMiB, 2, 2048, 64, 0};  // a GPU's

  Done append(protocol::LimitKind kind, uint64_t bytes);

  RingPort& ring_;
  DeviceTask& task_;
  Values values_ = kDefaults;
  bool uses_malloc_ = false, uses_printf_ = false;
};

}  // namespace heddle::client
