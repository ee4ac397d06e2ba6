#pragma once

#include <string>
#include <vector>

#include "device/cuda/gpus.h"

namespace heddle::keeper {

// What one worker's context takes of a GPU, and what is left once the keeper's own is there.
struct ContextCost {
  Bytes free, context;
};

// Measures it: with a context here, and one more in a child process. Call it in a process that has no context yet.
Result<ContextCost> measure_context(uint32_t ordinal);

// One line for a GPU: words "key=value", separated by tabs. Keys that a reader does not know are to be passed over.
//
//   uuid pci name model memory free context virtual_memory sms ... driver (as 13000)
std::string gpu_line(const cuda::Gpu& gpu, const ContextCost& cost, int driver);

}  // namespace heddle::keeper
