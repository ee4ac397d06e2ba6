#pragma once

#include <string_view>

// What device code calls of the toolkit's device runtime (libcudadevrt), where heddle has functions of its own for it:
// cudaGraphSetConditional. A handle of a conditional node is the address of its 32-bit value there, so kernels set it
// on every kind of device, with heddle's graphs (client/graph/condition.h), and whatever worker runs them.
namespace heddle::image {

// Whether heddle's device runtime has that function.
bool in_device_runtime(std::string_view name);
// Whether PTX names any of its functions.
bool names_device_runtime(std::string_view ptx);
// PTX that defines them.
std::string_view device_runtime_ptx();

}  // namespace heddle::image
