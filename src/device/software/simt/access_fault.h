#pragma once

#include <cstdint>

#include "device/software/simt/warp.h"

namespace heddle::software {

// Faults the block for an access of `bytes` at `address` by `lane`: misaligned if it may be touched, else illegal.
void raise_access_fault(Warp& warp, const Op& op, uint32_t lane, uint64_t address, uint64_t bytes, bool write,
                        bool may_be_touched);

}  // namespace heddle::software
