#pragma once

// Where things are on this machine, and a CUDA toolkit's directory whose nvcc is heddle's.

#include "driver/Command.h"

namespace heddle::compiler {

// What heddle cc needs. Returns what is missing and what to do about it; empty: all is there.
std::string findTools(Tools &Found);

// The architectures that this nvcc compiles for; empty if it does not say.
std::vector<unsigned> supportedArchitectures(const std::string &Nvcc);

// Makes `Directory` look like the toolkit of `With`, with heddle's compiler as bin/nvcc: for Makefiles that call
// $(CUDA_DIR)/bin/nvcc, and for CMAKE_CUDA_COMPILER. Returns what failed; empty: done.
std::string makeToolkit(const std::string &Directory, const Tools &With);

} // namespace heddle::compiler
