#pragma once

#include <span>
#include <vector>

#include "core/device_model.h"

// Calls of NVIDIA's host libraries (cuBLAS, cuRAND, cuFFT) as data: the program packs its arguments into words of 8
// bytes, the worker unpacks them. Both sides read the same tables (cublas_functions.h, curand.h, cufft.h), so that a
// call has one meaning.
namespace heddle::library {

enum class Library : uint32_t { kCublas = 1, kCurand = 2, kCufft = 3 };
bool exists(Library library);

struct Call {
  Library library = Library::kCublas;
  uint32_t function = 0;  // index in the library's table
  std::span<const uint64_t> words;
};

// Memory that a call touches.
struct Operand {
  uint64_t address = 0, bytes = 0;
  bool written = false;
  // An array of `pointers` addresses, each of `bytes` bytes; itself at `address`. 0: no array.
  uint64_t pointers = 0;
};

// What a call asks for, told from its words alone.
struct Demand {
  std::vector<Operand> operands;  // those of no bytes left out
  double flops = 0;               // multiplications and additions
  uint64_t bytes = 0;             // of operands, each counted once
  uint64_t blocks = 1;            // of kThreads threads that a GPU would have for it
  static constexpr uint32_t kThreads = 256, kRegisters = 64;
};

// Longer than any call.
inline constexpr uint32_t kMostWords = 64;

// kNotFound: there is no such library or function. kInvalidArgument: the words are not exactly the function's, or an
// argument makes no sense; the text names it. What passes has operands whose extents do not overflow.
Result<Demand> demand(const Call& call);

// "cublasSgemm_v2"; "?" for what does not exist.
const char* name_of(const Call& call);
const char* name_of(Library library);

}  // namespace heddle::library
