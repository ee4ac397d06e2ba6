#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "device/software/simt/kernel.h"
#include "device/software/simt/warp.h"

namespace heddle::software {

// The frames of a block's warps. A frame given back is kept for the next call of the same function, its constants in
// place.
class FramePool {
 public:
  // Throws std::bad_alloc.
  Frame* acquire(const CompiledFunction& function);
  void release(Frame* frame);
  // Takes back the frames of all calls, when a block is abandoned in the middle of them.
  void release_calls();

 private:
  struct Storage {
    Frame frame;
    std::unique_ptr<std::byte[]> memory;
  };
  std::vector<std::unique_ptr<Storage>> all_;
  std::unordered_map<const CompiledFunction*, std::vector<Frame*>> free_;
};

}  // namespace heddle::software
