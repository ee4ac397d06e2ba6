#pragma once

#include <cstdint>
#include <memory>

#include "core/result.h"
#include "device/software/simt/block_state.h"
#include "device/software/simt/kernel.h"
#include "device/software/simt/memory_map.h"

namespace heddle::software {

// What has been executed since the Block was made, over all blocks that it ran.
struct Counters {
  // PTX instructions, each counted once for every group of lanes of a warp that executed it together.
  uint64_t warp_instructions = 0;
  // Traffic of global memory: 32 for every 32-byte sector that an instruction touches in a warp; neighbouring lanes in
  // one sector count once. Includes .const variables and atomics, not shared, local or parameter memory.
  uint64_t global_bytes = 0;
  // Of that, in memory that lies on the host (MemoryMap::set_on_host). Accesses of tensor instructions and of textures
  // count as the device's.
  uint64_t host_bytes = 0;
};

// Executes thread blocks of one launch, one after the other, a bounded number of instructions at a time. Its warps take
// turns, so that threads which wait for each other make progress.
//
// Not thread-safe; different Blocks of one launch may run on different threads.
class Block {
 public:
  enum class Progress { kRunning, kFinished, kFaulted };

  ~Block();

  // `kernel` and `memory` outlive the Block. Errors: a block of no or too many threads, parameters that are too short,
  // no memory.
  static Result<std::unique_ptr<Block>> create(const CompiledKernel& kernel, const LaunchShape& launch,
                                               const MemoryMap& memory, PrintSink print);

  // Begins a block of the grid; a block that was not finished is forgotten.
  void start(Dim3 block_index, uint32_t sm);

  // Runs until the block has ended, about so many warp instructions were executed, or all its warps only wait for
  // another block (is_waiting()). A turn of a warp is not cut short unless it would exceed them. A faulted block does
  // not go on.
  Progress run(uint64_t max_warp_instructions);
  // Whether the last run() ended because all warps polled memory for many turns.
  bool is_waiting() const { return waiting_; }

  const Counters& counters() const { return counters_; }
  const Fault& fault() const { return state_.fault; }

 private:
  Block();
  void prepare(const CompiledKernel& kernel, const LaunchShape& launch, const MemoryMap& memory, PrintSink print);
  void run_prologue(Warp& warp);
  void start_warp(Warp& warp);
  void forget_barriers();
  void take_counts();
  Progress progress() const;
  void report_deadlock();

  BlockState state_;
  Counters counters_;
  std::unique_ptr<AccessCheck> check_;
  std::unique_ptr<std::byte[]> memory_;  // shared, then local memory
  uint32_t next_warp_ = 0;
  bool waiting_ = false;
};

}  // namespace heddle::software
