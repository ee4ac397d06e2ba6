#pragma once

#include <memory>

#include "core/fd.h"
#include "device/software/simt/device_heap.h"
#include "device/software/simt/memory_map.h"

namespace heddle::software {

class WrittenMemory;

// The memory that one context's kernels and copies can reach: buffers, which others own and which are mapped here at
// the addresses that the session has for them, and the variables of its modules, which live in this process only.
//
// Thread safety: accessible() from any thread; the rest from one thread at a time.
class DeviceMemory {
 public:
  // The window has been reserved by the caller and outlives this object; nothing is mapped in it.
  static Result<DeviceMemory> create(uint64_t window_base, uint64_t window_bytes);
  DeviceMemory(DeviceMemory&&) = default;
  ~DeviceMemory();

  // As device::Context::map() and unmap(). kInvalidArgument for what is not aligned, outside the window, larger than
  // the memory behind it, or mapped already (unmap: not mapped).
  Status map(uint64_t address, Bytes size, const Fd& memory);
  Status unmap(uint64_t address, Bytes size);
  // As device::Context::lies_on_host().
  void lies_on_host(uint64_t address, Bytes size) { (void)map_.set_on_host(address, size.value); }

  // Zeroed memory for the variables of a module, aligned to 2 MiB, until this object ends. kOutOfMemory. Another
  // process with the same window that asks for the same in the same order gets the same addresses, where they are free
  // there.
  Result<uint64_t> add_variables(uint64_t bytes);

  // The heap of device malloc, made before the first launch of a kernel that may use it; null before. Its size can be
  // set until then.
  static constexpr uint64_t kHeapBytes = 8 * kMiB;  // CUDA's default
  Status set_heap_bytes(uint64_t bytes);
  Status make_heap();
  DeviceHeap* heap() const { return heap_.get(); }

  // Where blocks of a cooperative launch count who has arrived (cooperative_groups/details/driver_abi.h: the address in
  // %envreg1 and %envreg2). A launch leaves it as it found it, so that another may use it tens of thousands of launches
  // later.
  Result<uint64_t> grid_workspace(uint64_t grid_id);

  // Whether a copy may touch [address, address + bytes): addresses of the device must be mapped, others are the
  // host's and pass.
  bool accessible(uint64_t address, uint64_t bytes) const;
  const MemoryMap& map() const { return map_; }

  // What copies, fills and kernels write is noted there, which outlives this object; null where nobody asks.
  void note_writes(WrittenMemory* written) { written_ = written; }
  WrittenMemory* written() const { return written_; }

 private:
  DeviceMemory(uint64_t base, uint64_t bytes, Mapping variables, MemoryMap map);
  // The same for what no program is told the address of: it disturbs no variable's.
  Result<uint64_t> add_own(uint64_t bytes);
  Result<uint64_t> open_up(uint64_t bytes, const char* what, bool from_start);
  Status check_range(uint64_t address, uint64_t bytes) const;
  bool any_mapped(uint64_t address, uint64_t bytes) const;

  uint64_t base_ = 0, bytes_ = 0;
  Mapping variables_;                           // reserved addresses for module variables
  uint64_t variables_base_ = 0;                 // the aligned part of it
  uint64_t variables_used_ = 0, own_used_ = 0;  // from its start, and from its end
  MemoryMap map_;
  uint64_t heap_bytes_ = kHeapBytes;
  std::unique_ptr<DeviceHeap> heap_;
  uint64_t workspaces_ = 0;  // made with the first
  WrittenMemory* written_ = nullptr;
};

}  // namespace heddle::software
