#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "core/result.h"
#include "image/image.h"
#include "image/module_info.h"

// What a program module offers: its kernels with what their launches need, and its variables.
namespace heddle::image {

// What PTX declares, without a look at its code beyond the names in it. Registers are unknown (0). What a kernel calls
// through a pointer does not count towards its static shared memory. kCorrupt or kNotSupported with the line.
Result<ModuleInfo> describe_ptx(std::string_view ptx);

// The same for separately compiled units that will be linked together: functions of one may be called by another.
Result<ModuleInfo> describe_ptx_units(std::span<const std::string_view> units);

// What a cubin (an ELF file, linked) says about its kernels. kCorrupt for what does not fit together.
Result<ModuleInfo> describe_cubin(std::string_view elf);

inline constexpr uint32_t kNewestArch = std::numeric_limits<uint32_t>::max();

// One description out of all images of a program, for a device of compute capability `arch` (as Image::arch): kernels
// from the PTX that such a device would execute, with registers and stack from the machine code of the nearest
// architecture; from the machine code alone where there is no PTX. kNotFound where there is neither.
Result<ModuleInfo> describe(std::span<const Image> images, uint32_t arch = kNewestArch);

}  // namespace heddle::image
