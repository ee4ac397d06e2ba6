#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace heddle::image {

enum class ImageKind : uint8_t { kPtx, kCubin };

// Which devices run code of an architecture, beside the one that it names.
enum class ArchScope : uint8_t {
  kPortable,  // compute_90: PTX runs on every later device
  kFamily,    // compute_100f: on later devices of the same major version
  kExact,     // compute_90a: on that one only
};

// One program image out of a fat binary, decompressed.
struct Image {
  ImageKind kind = ImageKind::kPtx;
  uint32_t arch = 0;  // 75, 90, 120: ten times the compute capability
  ArchScope scope = ArchScope::kPortable;
  bool relocatable = false;  // a cubin of one source file of a program built with -rdc=true, not linked yet
  uint32_t unit = 0;         // index of the fat binary that it came from, where several were read together
  std::string bytes;         // PTX text without trailing NULs, or an ELF file
};

// "compute_90a" for PTX, "sm_80" for machine code: as nvcc's -gencode spells them.
std::string arch_name(const Image& image);

// The PTX that a device of compute capability `max_arch` (as Image::arch) should execute: for every unit the highest
// architecture that it can run, in the order of units. More than one result means separately compiled units, to be
// linked together. A unit that none of the others refers to may lack PTX: it is left out. What they call of heddle's
// own device runtime (device_runtime.h) comes last. The pointers point into `images`, and to device_runtime_unit().
// Errors (kNotFound) say which code there is and how to rebuild; kNotSupported: the unit without PTX is the runtime
// that kernels launch kernels by.
Result<std::vector<const Image*>> choose_ptx_units(std::span<const Image> images, uint32_t max_arch);

// That unit; it lives as long as the process.
const Image& device_runtime_unit();
// Whether any unit calls functions of it: in its PTX, or in machine code that is not linked yet.
bool calls_device_runtime(std::span<const Image> images);

// The same for a program of one unit, which most are; kNotSupported for one of several.
Result<const Image*> choose_ptx(std::span<const Image> images, uint32_t max_arch);

}  // namespace heddle::image
