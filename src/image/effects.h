#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "image/image.h"

// What a kernel may do with memory, read from PTX: through which parameters it reads and writes, which variables of its
// module, which addresses it may leave behind in memory, whether it follows addresses that it finds there; and whether
// it does the same again when it is run again.
//
// Conservative: "may". An instruction, a call or a form that is not known makes it all of them. Three assumptions,
// which hold for what compilers make of C++: an access through a parameter's or a variable's address stays within that
// buffer or variable; a number read from memory that is multiplied or shifted left is an index and no address, and so
// is one of less than 64 bits, unless it is put together to 64; addresses do not go through floating point or control
// flow.
namespace heddle::image {

// A variable of the module that a kernel names.
struct VariableUse {
  std::string name;
  bool read = false, written = false;
  bool operator==(const VariableUse&) const = default;
};

struct KernelEffects {
  std::string name;
  // Bit i: of parameter i; bit 63: of it or a later one.
  uint64_t read = 0;       // reads through it
  uint64_t written = 0;    // writes through it
  uint64_t accessed = 0;   // reads or writes through an address that it had a part in
  uint64_t kept = 0;       // stores the address that it is or holds
  uint64_t in_pieces = 0;  // the address that is accessed was put together from parts of it: it may lie at any byte
  std::vector<VariableUse> variables;   // of those that it names
  bool touches_variables = false;       // reads or writes a variable of the module
  bool keeps_module_addresses = false;  // stores the address of a variable or a function of the module
  bool reads_anything = false;          // as `follows_memory`, by what it prints
  bool writes_anything = false;         // through an address that is none of a parameter's and no variable's
  bool follows_memory = false;          // reads or writes through an address that it read from memory
  bool atomics = false;                 // has atomics whose result it gets, of any memory
  bool reductions = false;              // has atomics without one
  bool unordered = false;               // the order of these shows in what they leave: sums of floats, exchanges
  bool observes = false;                // may see time, where it runs, or how far others are (ptx_instructions.h)
  bool allocates = false;               // uses device malloc or free
  std::string unknown;                  // what was not understood, which makes it all of the above; empty: nothing

  bool may_read(size_t parameter) const { return may_read_anything() || (read >> bit_of(parameter) & 1) != 0; }
  bool may_write(size_t parameter) const { return writes_anything || (written >> bit_of(parameter) & 1) != 0; }
  bool may_keep(size_t parameter) const { return (kept >> bit_of(parameter) & 1) != 0; }
  bool keeps_addresses() const { return kept != 0; }
  // Of all that is mapped, and of every variable of every module.
  bool may_read_anything() const { return reads_anything || follows_memory; }
  // From the same memory it writes to the same addresses again, and but for `unordered` the same values.
  bool is_repeatable() const { return !atomics && !observes && unknown.empty(); }

  static constexpr size_t bit_of(size_t parameter) { return parameter < 63 ? parameter : 63; }
};

// Every kernel of separately compiled units that are linked together. kCorrupt or kNotSupported where one is no PTX.
Result<std::vector<KernelEffects>> effects_of_ptx(std::span<const std::string_view> units);

// Of the PTX that a device of compute capability `arch` (as Image::arch) would execute. kNotFound where there is only
// machine code, of which nothing is known.
Result<std::vector<KernelEffects>> effects(std::span<const Image> images, uint32_t arch);

}  // namespace heddle::image
