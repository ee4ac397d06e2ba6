#pragma once

// What a record may ask for. A tenant writes the ring, so nothing of a record reaches the device before it went through
// here. Pure functions over copies of records: no state, no allocation where all is well, never a crash.
//
// Malformed (kCudaUnknown): no client of ours would write it. Other codes: CUDA's own, for arguments that are wrong.

#include <span>

#include "core/device_model.h"
#include "device/device.h"
#include "image/module_info.h"
#include "protocol/messages.h"
#include "protocol/ring_memory.h"
#include "worker/refusal.h"

namespace heddle::worker {

// Where the addresses and bulk positions of a session's records may lie.
struct Bounds {
  const protocol::RingMemory* ring;
  protocol::Window window;
};

// Grid, block and shared memory by the model and the kernel, parameter bytes by the kernel. `trailing` is what follows
// the LaunchRecord; the result's parameters point into it.
Checked<device::LaunchConfig> check_launch(const protocol::LaunchRecord& record, std::span<const std::byte> trailing,
                                           const image::KernelInfo& kernel, const DeviceModel& model);

struct CheckedCopy {
  device::CopyShape shape;
  device::CopyDirection direction = device::CopyDirection::kOnDevice;
  uint64_t bytes = 0;  // 0: nothing to copy, and the ends were not looked at
};
// `to` and `from` are the variables that the ends name; looked at only where an end's place is kSymbol.
Checked<CheckedCopy> check_copy(const protocol::CopyRecord& record, const Bounds& bounds, device::Variable to,
                                device::Variable from);

// Whether it ends in memory of the program's: the bulk area, or what is pinned.
bool ends_at_program(const protocol::CopyRecord& copy, const protocol::Window& window);

struct CheckedFill {
  device::FillShape shape;
  uint64_t bytes = 0;  // 0: nothing to fill
};
Checked<CheckedFill> check_fill(const protocol::FillRecord& record, const Bounds& bounds, device::Variable to);

// The bulk bytes where a symbol's address and size are to be written.
Checked<std::span<char>> check_symbol(const protocol::SymbolRecord& record, const Bounds& bounds);

// The bulk bytes where what came of opening the library is to be written.
Checked<std::span<char>> check_library_open(const protocol::LibraryOpenRecord& record, const Bounds& bounds);

// A call whose words are exactly its function's and make sense; where its operands lie is the device's to check.
struct CheckedCall {
  library::Library library{};
  uint32_t function = 0, count = 0;
  std::array<uint64_t, library::kMostWords> words;

  library::Call call() const { return {library, function, std::span(words).first(count)}; }
};
Checked<CheckedCall> check_library_call(const protocol::LibraryCallRecord& record, std::span<const std::byte> trailing);

// kEventRecord and kEventWait.
Checked<void> check_event(const protocol::RecordHeader& header);

}  // namespace heddle::worker
