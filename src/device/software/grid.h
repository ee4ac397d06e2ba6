#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/occupancy.h"
#include "device/software/operation.h"
#include "device/software/program.h"
#include "device/software/simt/block.h"
#include "device/software/simt/check/declared_access.h"

namespace heddle::software {

// Of each thread's local memory beyond what the compiler knows: CUDA's default, and what local memory can be.
inline constexpr uint32_t kDefaultStackBytes = 1024, kMostStackBytes = 512 * 1024;

// A launch that is running: which of its blocks have been dealt out, and the interpreters that its blocks use one after
// the other. The counts belong to the owner's lock; interpreter() and recycle() are thread safe.
class Grid {
 public:
  struct Setting {
    const DeviceMemory* memory = nullptr;
    device::PrintSink print;
    uint32_t sm_count = 1;
    uint64_t id = 0;
    uint64_t workspace = 0;  // of a cooperative launch
    uint32_t stack_bytes = kDefaultStackBytes;
    std::shared_ptr<const TextureTable> textures;
    Checks* checks = nullptr;  // then the kernel's checked code runs. Outlives the grid
    DeclaredAccess declared;   // what that is held against
  };
  Grid(const ProgramKernel& kernel, const device::LaunchConfig& config, const SmShare& block_share,
       const Setting& setting);

  const SmShare& block_share() const { return block_share_; }
  uint64_t id() const { return shape_.grid_id; }
  uint64_t blocks() const { return blocks_; }
  Dim3 block_index(uint64_t number) const;

  // An interpreter for blocks of this launch, a used one where there is one.
  Result<std::unique_ptr<Block>> interpreter();
  void recycle(std::unique_ptr<Block> block);

  // Tells threads that run blocks of it to stop at the end of their turn.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  Operation* operation = nullptr;
  uint64_t next = 0;         // first block that has not been dealt out
  uint64_t done = 0;         // blocks that have been computed (and, where there is pacing, have left their SM)
  uint64_t resident = 0;     // blocks dealt out and not done
  uint64_t computing = 0;    // runs in the hands of a thread
  uint64_t capacity = 0;     // blocks that the device holds at once
  bool cooperative = false;  // all blocks are to be resident together
  bool all_dealt() const { return next == blocks_; }
  bool finished() const { return done == blocks_ || (cancelled() && computing == 0); }

 private:
  const CompiledKernel& code_;
  const MemoryMap& memory_;
  PrintSink print_;
  LaunchShape shape_;
  std::shared_ptr<const TextureTable> textures_;
  std::vector<std::byte> parameters_;
  DeclaredAccess declared_;
  SmShare block_share_;
  uint64_t blocks_ = 0;
  std::atomic<bool> cancelled_ = false;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> idle_;
};

// A few blocks of one grid that are run one after the other; between two turns it may stand in the middle of one.
struct BlockRun {
  enum class Outcome { kFinished, kPreempted, kFaulted };
  // Runs until all blocks are finished or `warp_instructions` are used up. Adds the finished blocks to `finished`.
  Outcome run(uint64_t warp_instructions, uint32_t sm_count);

  std::shared_ptr<Grid> grid;
  uint64_t next = 0, end = 0;    // blocks still to finish; the first may have begun
  uint32_t sm = 0;               // where the first stands; the others follow on the next SMs
  std::unique_ptr<Block> block;  // of the first, once it has begun

  // Where kernels are paced, a run is one block in one slot, from `placed` in the device's time.
  uint32_t slot = 0;
  TimePoint placed{};

  uint64_t finished = 0;
  Counters counters;  // of the block that finished last, or has begun since
  Fault fault;

 private:
  bool begin();
};

}  // namespace heddle::software
