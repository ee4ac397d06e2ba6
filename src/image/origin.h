#pragma once

#include <cstdint>

namespace heddle::image {

// Where a value of a kernel may come from (effects.cc).
struct Origin {
  enum : uint8_t {
    kIndex = 1,      // computed from memory, but no address
    kLoaded = 2,     // read from memory as it is: maybe an address
    kOwn = 4,        // an address of the kernel's own shared or local memory, or of its parameters
    kModule = 8,     // maybe the address of a function of the module, or one that a variable was initialised with
    kPiece = 16,     // of less than 64 bits, read from a parameter of the kernel
    kTogether = 32,  // such pieces, put together to 64 bits
  };
  uint64_t parameters = 0;  // bit i: parameter i of the kernel
  uint64_t variables = 0;   // bit i: the address of the i-th variable that the kernel names
  uint8_t from = 0;

  bool operator==(const Origin&) const = default;
  bool is(uint8_t what) const { return (from & what) != 0; }
  // True where that told something new.
  bool add(const Origin& other) {
    const Origin before = *this;
    parameters |= other.parameters;
    variables |= other.variables;
    from |= other.from;
    return !(*this == before);
  }
  Origin as_index() const {
    return {parameters, variables, static_cast<uint8_t>(is(kLoaded) ? (from & ~kLoaded) | kIndex : from)};
  }
  Origin as_address() const {
    Origin whole = *this;
    if (is(kIndex)) whole.from |= kLoaded;
    if (is(kPiece)) whole.from |= kTogether;
    return whole;
  }
  // Of the kernel's own memory, and of nothing else.
  bool is_own() const { return is(kOwn) && !is(kLoaded) && parameters == 0 && variables == 0; }
};

}  // namespace heddle::image
