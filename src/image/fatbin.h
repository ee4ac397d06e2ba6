#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/units.h"
#include "image/image.h"

// The fat binary: nvcc's container for the images of one source file, or of one linked program.
//
//   header   16 bytes: magic 0xBA55ED50, version, header size, size of what follows
//   image    64 bytes and options, then its payload; next image at once
//   ...
namespace heddle::image {

// What one reading may allocate. The sizes stand in the input, which may lie.
struct ReadLimits {
  Bytes image{512 * kMiB};  // one decompressed image
  Bytes total{2 * kGiB};    // all images together
};

// The fat binaries that a registration wrapper, as __cudaRegisterFatBinary receives it, points to; each span is a
// whole fat binary, for copying. Version 1 has one. Version 2 (-rdc=true) has the linked program first, then one for
// every source file. `wrapper` belongs to the calling program and is trusted to be readable; what it holds is checked
// as far as can be. The spans are valid as long as the program's object stays loaded.
Result<std::vector<std::span<const std::byte>>> fatbins_of_wrapper(const void* wrapper);

// All PTX and machine code of one fat binary, decompressed, in file order. Other kinds of image (-dlto) are passed
// over. Every offset and size is checked: kCorrupt for what does not fit, kLimitExceeded past `limits`, kNotSupported
// for a compression that is not known.
Result<std::vector<Image>> read_fatbin(std::span<const std::byte> fatbin, const ReadLimits& limits = {});

// The fat binaries that stand one behind the other in `bytes`, as a program of several units is handed on. kCorrupt for
// anything else between or behind them.
Result<std::vector<std::span<const std::byte>>> split_fatbins(std::span<const std::byte> bytes);

// The images of several fat binaries of one program, with Image::unit set to the index of theirs.
Result<std::vector<Image>> read_fatbins(std::span<const std::span<const std::byte>> fatbins,
                                        const ReadLimits& limits = {});

}  // namespace heddle::image
