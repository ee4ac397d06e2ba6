#pragma once

#include <cstdint>
#include <vector>

#include "device/software/simt/lanes/space.h"
#include "device/software/simt/op.h"

namespace heddle::software {

// What stands behind a checking handler: the kernel's own, and what it does.
struct CheckedStep {
  enum Kind : uint8_t {
    kNothing,
    kLoad,
    kStore,
    kAtomic,
    kBarrierObject,  // an mbarrier is made
    kSync,
    kMatrix,  // loads or stores a matrix by all lanes
    kBlockBarrier,
    kWarpBarrier,
    kCall,
    kReturn,
    kNative,
  };
  Handler run = nullptr;
  Kind kind = kNothing;
  At space = At::kGeneric;
  uint32_t element_bytes = 0, slot_bytes = 4;  // in memory, and of a lane in the register
  uint32_t arguments = 0;                      // of a native function
};
struct CheckedCode {
  std::vector<CheckedStep> steps;  // by place in the code
};

}  // namespace heddle::software
