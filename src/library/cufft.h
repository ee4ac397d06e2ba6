#pragma once

#include <array>

#include "library/call.h"

// cuFFT's transforms as words. A call says all of its plan, so that it means the same to a worker that has not seen the
// plan before.
namespace heddle::library::cufft {

enum class Function : uint32_t {
  kC2C,
  kR2C,
  kC2R,
  kZ2Z,
  kD2Z,
  kZ2D,
  kSize,  // what a plan's work area takes, to the host: struct SizeAnswer
};
inline constexpr uint32_t kFunctions = 7;
const char* name_of(uint32_t function);

// cufftResult, as far as heddle answers with it.
enum class Outcome : int {
  kSuccess = 0,
  kInvalidPlan = 1,
  kAllocFailed = 2,
  kInvalidType = 3,
  kInvalidValue = 4,
  kInternalError = 5,
  kExecFailed = 6,
  kSetupFailed = 7,
  kInvalidSize = 8,
  kNotSupported = 16,
};

// cufftType of the six transforms, and back. kSize for what is none.
int type_of(Function function);
Function function_of(int type);
bool is_double(Function function);
bool from_real(Function function);
bool to_real(Function function);

struct SizeAnswer {
  int64_t status = 0;  // cufftResult
  uint64_t bytes = 0;
};

// How one side's numbers lie. Basic: side by side, and its other members mean nothing.
struct Layout {
  bool basic = true;
  std::array<int64_t, 3> embed{1, 1, 1};  // the sizes of what the transform is a part of; the first has no meaning
  int64_t stride = 1, distance = 0;       // between numbers, and between transforms of the batch
};

struct Transform {
  int type = 0;
  uint32_t rank = 1;
  std::array<int64_t, 3> size{1, 1, 1};  // the last `rank` of them
  Layout in, out;
  int64_t batch = 1;
  bool forward = true;
  uint64_t input = 0, output = 0;  // device addresses; the answer's, on the host, of kSize
  uint64_t work = 0, work_bytes = 0;

  static constexpr uint32_t kWords = 19;
  std::array<uint64_t, kWords> pack() const;
  static Result<Transform> unpack(std::span<const uint64_t> words);
};

// A side as it lies in memory, in elements: number (i, j, k) of a transform stands at ((i embed[1] + j) embed[2] + k)
// stride.
struct Side {
  Layout layout;
  int64_t last = 0;  // how many numbers the last dimension has: half of a real one's, as a complex one
  uint32_t bytes = 0;

  int64_t at(int64_t transform, int64_t i, int64_t j, int64_t k) const {
    return transform * layout.distance + ((i * layout.embed[1] + j) * layout.embed[2] + k) * layout.stride;
  }
};
Side input_of(const Transform& transform, Function function);
Side output_of(const Transform& transform, Function function);

Result<Demand> demand(const Call& call);

}  // namespace heddle::library::cufft
