#pragma once

#include <array>

#include "library/call.h"

// cuRAND's host API: its generating calls as words. A call says all of its generator that matters, so that it means the
// same to a worker that has not seen the generator before.
namespace heddle::library::curand {

enum class Function : uint32_t {
  kBits,           // curandGenerate
  kUniform,        // curandGenerateUniform
  kUniformDouble,  // ...
  kNormal,
  kNormalDouble,
  kLogNormal,
  kLogNormalDouble,
  kPoisson,
  kPoissonMethod,  // curandGeneratePoissonMethod: b is the method
  kBits64,         // curandGenerateLongLong
  // Tables of the library's, from their beginning: of the set that `ordering` says.
  kDirections32,  // curandGetDirectionVectors32
  kDirections64,
  kShifts32,  // curandGetScrambleConstants32
  kShifts64,
};
inline constexpr uint32_t kFunctions = 14;
constexpr bool is_table(Function function) {
  return function >= Function::kDirections32;
}
const char* name_of(uint32_t function);

// curandStatus_t, as far as heddle answers with it.
enum class Outcome : int {
  kSuccess = 0,
  kNotInitialized = 101,
  kAllocationFailed = 102,
  kTypeError = 103,
  kOutOfRange = 104,
  kLengthNotMultiple = 105,
  kLaunchFailure = 201,
  kInternalError = 999,
};

// curandRngType_t.
bool is_pseudo_random(int type);
bool is_quasi_random(int type);
bool is_scrambled(int type);
// Of quasi random generators: the others have 32.
bool has_64_bits(int type);
inline constexpr int kPhilox = 161;
inline constexpr uint32_t kMostDimensions = 20000;
// Elements of a table.
uint64_t table_size(Function function);

struct Draw {
  uint32_t generator = 0;  // which, in this process
  uint32_t changed = 0;    // counts what was set: a worker's generator with another count is set anew
  int type = 0, ordering = 0;
  uint64_t seed = 0;
  uint64_t offset = 0;    // as it was set
  uint64_t position = 0;  // offset and what was drawn since; of quasi random numbers, in points
  uint64_t output = 0;    // device address
  uint64_t count = 0;
  double a = 0, b = 0;  // mean and deviation; the mean of a Poisson distribution
  // A generator of the host (curandCreateGeneratorHost), whose numbers the processor makes: `output` is an address in
  // the session's pinned memory.
  bool host = false;
  uint32_t dimensions = 1;  // of quasi random points

  static constexpr uint32_t kWords = 10;
  std::array<uint64_t, kWords> pack() const;
  static Result<Draw> unpack(std::span<const uint64_t> words);
};

uint32_t bytes_of(Function function);  // of one number
// Draws into memory that this process may write: how software devices and generators of the host do it.
void generate(Function function, const Draw& draw, void* to);

Result<Demand> demand(const Call& call);

}  // namespace heddle::library::curand
