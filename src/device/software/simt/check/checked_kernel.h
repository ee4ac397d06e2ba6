#pragma once

#include <memory>

#include "device/software/simt/kernel.h"

namespace heddle::software {

// The same kernel, its memory accesses, barriers and calls told to the block's AccessCheck first. The checking handlers
// stand in a copy of the code, so that kernels that are not checked pay nothing.
std::unique_ptr<const CompiledKernel> with_checks(const CompiledKernel& kernel);

}  // namespace heddle::software
