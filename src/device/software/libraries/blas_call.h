#pragma once

#include <map>
#include <optional>
#include <vector>

#include "device/software/libraries/openblas.h"
#include "library/cublas.h"

namespace heddle::software {

// Arrays of addresses that a call names, by their own address, as they were when they were checked: the program may
// change them at any time.
using CheckedArrays = std::map<uint64_t, std::vector<uint64_t>>;

// Carries out a cuBLAS call that library::demand() has found nothing wrong with, and whose operands can be reached.
// Returns what cannot be done.
std::optional<std::string> run_cublas(const library::Call& call, const CheckedArrays& arrays, const Openblas& blas);

}  // namespace heddle::software
