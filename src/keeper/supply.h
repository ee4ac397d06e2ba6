#pragma once

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

  // kOutOfMemory where neither has it.
  Result<Fd> make(Bytes size);
  // Memory that was made here or by a keeper before, and that nobody else can touch any more.
  void take_back(Fd memory, Bytes size) { pool_.put({std::move(memory), size}); }
  bool has_uncleared() const { return pool_.has_uncleared(); }
  void clear_one();
  // Gives back what is more.
  void keep_at_most(Bytes most);
  // What nobody uses: of the driver and kept here. Gives back what is too much; to be called regularly.
  Result<Bytes> left();

 private:
  std::optional<Fd> from_pool(Bytes size);

  cuda::Allocator& allocator_;
  SegmentPool pool_;
};

}  // namespace heddle::keeper
