#pragma once

#include <optional>
#include <string>

#include "device/software/libraries/call_arguments.h"
#include "device/software/libraries/openblas.h"

namespace heddle::software {

// cuBLAS's functions of level 1 whose types are arguments (cublasAxpyEx and its kin): calculated in double precision,
// rounded once where something is stored. Returns what cannot be done.
std::optional<std::string> run_typed_vectors(uint32_t function, bool wide, const CallArguments& arguments,
                                             const Openblas& blas);

// cublas<t>dotu and dotc. OpenBLAS has them, but its kernels for processors with AVX2 read an element beyond vectors
// whose step is not 1 (0.3.21), which ends the process where that is the end of the device's memory.
void complex_dot(library::cublas::DataType type, bool conjugates, const CallArguments& arguments);

}  // namespace heddle::software
