#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "image/image.h"

// What a kernel may do with memory, read from PTX: which parameters it may write through, which addresses it may leave
// behind in memory, and whether it follows addresses that it finds there.
//
// Conservative: "may". An instruction, a call or a form that is not known makes it all of them. Three assumptions,
// which hold for what compilers make of C++: an access through a parameter's address stays within that parameter's
// buffer; a number read from memory that is multiplied or shifted left is an index and no address, and so is one of
// less than 64 bits, unless it is put together to 64; addresses do not go through floating point or control flow.
namespace heddle::image {

struct KernelEffects {
  std::string name;
  uint64_t written = 0;            // bit i: writes through parameter i; bit 63: through it or a later one
  uint64_t kept = 0;               // bit i: stores the address that parameter i is or holds
  uint64_t accessed = 0;           // bit i: reads or writes through an address that parameter i had a part in
  bool touches_variables = false;  // reads or writes a variable of the module
  bool writes_anything = false;    // through an address that is none of a parameter's and no variable's
  bool follows_memory = false;     // reads or writes through an address that it read from memory
  std::string unknown;             // what was not understood, which makes it all of the above; empty: nothing

  bool may_write(size_t parameter) const { return writes_anything || (written >> bit_of(parameter) & 1) != 0; }
  bool may_keep(size_t parameter) const { return (kept >> bit_of(parameter) & 1) != 0; }
  bool keeps_addresses() const { return kept != 0; }

  static constexpr size_t bit_of(size_t parameter) { return parameter < 63 ? parameter : 63; }
};

// Every kernel of separately compiled units that are linked together. kCorrupt or kNotSupported where one is no PTX.
Result<std::vector<KernelEffects>> effects_of_ptx(std::span<const std::string_view> units);

// Of the PTX that a device of compute capability `arch` (as Image::arch) would execute. kNotFound where there is only
// machine code, of which nothing is known.
Result<std::vector<KernelEffects>> effects(std::span<const Image> images, uint32_t arch);

}  // namespace heddle::image
