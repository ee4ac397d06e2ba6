#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/cuda_error.h"
#include "device/software/simt/barrier.h"
#include "device/software/simt/frame_pool.h"
#include "device/software/simt/kernel.h"
#include "device/software/simt/memory_map.h"
#include "device/software/simt/warp.h"

namespace heddle::software {

class AccessCheck;
class DeclaredAccess;
class DeviceHeap;
class TextureTable;
struct Checks;

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

// Where device printf goes; one call for each printf of each thread.
using PrintSink = std::function<void(std::string_view)>;

// What all blocks of a launch have in common.
struct LaunchShape {
  Dim3 grid, block;
  uint32_t dynamic_shared = 0;            // bytes
  std::span<const std::byte> parameters;  // at least CompiledKernel::parameter_bytes; outlives the blocks
  uint32_t sm_count = 1;
  uint64_t grid_id = 0;
  uint64_t workspace = 0;       // of a cooperative launch: zeroed words in device memory for grid-wide synchronisation
  uint32_t stack_bytes = 1024;  // per thread, for recursion only (cudaLimitStackSize)
  Checks* checks = nullptr;     // of a checked kernel. Outlives the blocks.
  const DeclaredAccess* declared = nullptr;  // of a checked kernel; null: anything. Outlives the blocks.
  DeviceHeap* heap = nullptr;                // of device malloc; null: malloc finds no room. Outlives the blocks.
  const TextureTable* textures = nullptr;    // null: there are none. Outlives the blocks.
};

// Why a block stopped. The text names kernel, PTX line, block and thread, and the address where there is one.
struct Fault {
  uint32_t cuda_error = 0;
  std::string text;
};

// What the handlers see of their block.
struct BlockState {
  const CompiledKernel* kernel = nullptr;
  const MemoryMap* memory = nullptr;
  LaunchShape launch;
  PrintSink print;
  Dim3 index;
  uint32_t sm = 0;

  const uint32_t* operands = nullptr;  // of the kernel
  const std::byte* parameters = nullptr;
  std::byte* shared = nullptr;  // 64-byte aligned
  uint32_t shared_bytes = 0;
  uint32_t local_bytes = 0;   // of one thread
  uint32_t local_stride = 0;  // from thread to thread
  FramePool frames;
  std::vector<Warp> warps;
  uint32_t live = 0;  // threads that have not exited
  Barrier barriers[kBarriers];
  uint32_t barriers_in_use = 0;  // bit by bit: those at which somebody has arrived
  Fault fault;
  AccessCheck* check = nullptr;   // of a checked kernel
  uint32_t alive = 0;             // bit by bit: warps with threads that have not exited
  uint32_t running = 0;           // bit by bit: those of them that no barrier holds
  uint32_t held[kBarriers] = {};  // bit by bit: warps that each barrier holds
};

// Whether a barrier holds the warp with all its live lanes, ahead of the Op at pc.
[[gnu::always_inline]] inline bool is_held(const Warp& warp) {
  return warp.live && !(warp.block->running >> warp.index & 1);
}

// Records the first fault of the block and stops the warp. `lane` is one that met it.
void raise(Warp& warp, const Op& op, uint32_t lane, CudaError cuda_error, std::string_view what);

}  // namespace heddle::software
