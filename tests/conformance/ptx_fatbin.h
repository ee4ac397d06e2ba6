#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::conformance {

// A fat binary with nothing but this PTX in it, for compute capability `arch` (75) and later.
std::string ptx_fatbin(std::string_view ptx, uint32_t arch);
// The kernels of kernels.cu, from the PTX that is kept in the repository.
std::string kernels_from_ptx();
// The same, as nvcc built them with this suite; empty where it was not found.
std::string kernels_from_nvcc();

}  // namespace heddle::conformance
