#pragma once

#include <span>
#include <vector>

#include "device/cuda/allocator.h"
#include "keeper/segment_pool.h"

namespace heddle::keeper {

// A GPU's memory for programs, always zero: what came back from others, and what the driver makes.
//
// What came back is kept, since making memory anew costs calls of the driver and clearing it 0.3 ms a GiB
// (HARDWARE.md). It is cleared before anybody waits for it, if there is time. It goes to the driver when memory is
// short:
// - heddled asks for more than the driver has: as much as it asks for;
// - others would find less free than is kept here: until half of all that nobody uses is free. They are processes
//   outside of heddled, and the contexts of workers; the driver refuses them without asking here.
// - it would be more than heddled's share of the GPU, together with what is in use: heddled says how much that leaves.
class Supply {
 public:
  explicit Supply(cuda::Allocator& allocator) : allocator_(allocator) {}

  // Pieces that are cleared in one turn of the GPU, and how much of it is enough where nobody has asked for it yet:
  // who asks meanwhile waits for the turn.
  static constexpr size_t kMostAtOnce = 64;
  static constexpr Bytes kEnoughClearedAhead{4 * kGiB};

  // One for each size, in their order; kOutOfMemory where neither has it. The GPU clears all of them in one turn.
  std::vector<Result<Fd>> make(std::span<const Bytes> sizes);
  // Memory that was made here or by a keeper before, and that nobody else can touch any more.
  void take_back(Fd memory, Bytes size) { pool_.put({std::move(memory), size}); }
  bool has_uncleared() const { return pool_.has_uncleared(); }
  // The oldest that is not cleared, and some more.
  void clear_some();
  // Gives back what is more.
  void keep_at_most(Bytes most);
  // What nobody uses: of the driver and kept here. Gives back what is too much; to be called regularly.
  Result<Bytes> left();

 private:
  // Zero already, or with `clearing` once the allocator has finished clearing. A full GPU is asked again `retries`
  // times.
  Result<Fd> make(Bytes size, bool& clearing, int& retries);
  std::optional<Fd> from_pool(Bytes size, bool& clearing);

  cuda::Allocator& allocator_;
  SegmentPool pool_;
};

}  // namespace heddle::keeper
