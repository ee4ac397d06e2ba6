#pragma once

#include <optional>
#include <string>

#include "client/device/virtual_device.h"
#include "client/memory/managed_buffer.h"
#include "core/clock.h"

// A touch of managed memory that waits for kernels on the device. Where a kernel waits for the host in turn, neither
// goes on: the program would hang without a word. So the first touch of a process that has waited for kWarnAfter while
// the device works says on stderr what it waits for, and how to run the program instead.
//
// Thread safety: an object belongs to one thread.
namespace heddle::client {

class StalledTouch {
 public:
  static constexpr Duration kWarnAfter = std::chrono::seconds(1);

  // The buffer that holds `address`, which the host touches or prefetches; nullopt where it holds none.
  StalledTouch(VirtualDevice& device, uint64_t address, std::optional<ManagedBuffer> buffer)
      : device_(device), address_(address), buffer_(buffer), working_since_(clock_.now()) {}

  // To be called again and again while the touch waits. Time in which the device has not begun to work for the program
  // does not count: the program's turn comes.
  void look();

 private:
  std::string message(Duration waited) const;

  const MonotonicClock clock_;
  VirtualDevice& device_;
  const uint64_t address_;
  const std::optional<ManagedBuffer> buffer_;
  TimePoint working_since_;
};

// "add(int*, int)" of "_Z3addPii"; what is no mangled name stays as it is.
std::string demangled(const char* name);

}  // namespace heddle::client
