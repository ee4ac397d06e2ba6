#pragma once

#include <cstddef>
#include <cstdint>

#include "core/units.h"

// The layout of what nvcc writes. The wrapper is the one that NVIDIA's fatbinary_section.h declares; the container
// is not documented and was read from the output of nvcc 13.0 (cubins of format 1.8, PTX 9.0).
namespace heddle::image {

inline constexpr uint32_t kWrapperMagic = 0x466243B1;
inline constexpr uint32_t kFatbinMagic = 0xBA55ED50;

// Far more than any linker puts into an object; a size beyond it is garbage.
inline constexpr uint64_t kMaxFatbinBytes = 16 * kGiB;

struct FatbinWrapper {
  uint32_t magic;
  uint32_t version;          // 1, or 2 for a program linked by nvlink
  const void* data;          // a fat binary: the images, or in version 2 the linked cubins
  const void* const* units;  // version 2: every source file's own fat binary, ends with a null
};

struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_size;
  uint64_t size;  // of all images
};
static_assert(sizeof(FatbinHeader) == 16);

struct FatbinEntry {
  uint16_t kind;
  uint16_t version;
  uint32_t header_size;  // this structure, then compiler options and a name
  uint64_t payload_size;
  uint32_t compressed_size;  // of the payload's beginning; 0 where it is plain
  uint32_t options_offset;
  uint16_t format_minor, format_major;
  uint32_t arch;
  uint32_t name_offset, name_size;
  uint64_t flags;
  uint64_t hash;  // link-time-optimisation images only
  uint64_t raw_size;
};
static_assert(sizeof(FatbinEntry) == 64 && offsetof(FatbinEntry, raw_size) == 56);

// FatbinEntry::kind. Others are link-time-optimisation code, which only nvlink reads.
inline constexpr uint16_t kFatbinPtx = 1, kFatbinCubin = 2;

// FatbinEntry::flags.
inline constexpr uint64_t kFatbinLz4 = 0x2000;           // -compress-mode=speed, and what CUDA 11 and 12 wrote
inline constexpr uint64_t kFatbinZstd = 0x8000;          // the default, size, balance
inline constexpr uint64_t kFatbinExactArch = 0x100000;   // compute_90a
inline constexpr uint64_t kFatbinFamilyArch = 0x200000;  // compute_100f

}  // namespace heddle::image
