#pragma once

#include <optional>
#include <string>

#include "device/software/libraries/call_arguments.h"
#include "device/software/libraries/openblas.h"

namespace heddle::software {

// Carries out a cuBLAS call that library::demand() has found nothing wrong with, and whose operands can be reached.
// Returns what cannot be done.
std::optional<std::string> run_cublas(const library::Call& call, const CheckedArrays& arrays, const Openblas& blas);

}  // namespace heddle::software
