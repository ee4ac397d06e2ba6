#pragma once

#include <array>

#include "library/call.h"
#include "library/cublas_functions.h"

// cuBLAS: its calls as words, and what the words mean. The words of a call: those of Setting, then the arguments in
// order, one word each; a scalar takes two (its value, or its address in device memory), the parameters of rotm five.
namespace heddle::library::cublas {

// cublasStatus_t, as far as heddle answers with it.
enum class Outcome : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kMappingError = 11,
  kExecutionFailed = 13,
  kInternalError = 14,
  kNotSupported = 15,
};

// cudaDataType and cublasComputeType_t, those with a meaning here.
enum class DataType : int {
  kF32 = 0,
  kF64 = 1,
  kF16 = 2,
  kI8 = 3,
  kC32 = 4,
  kC64 = 5,
  kI32 = 10,
  kBf16 = 14,
};
// Bytes of one; 0 for a type that heddle does not serve.
uint32_t bytes_of(DataType type);
// What cublasComputeType_t (from 64 on), or a cudaDataType in its place as CUDA 10 had it, calculates and holds scalars
// in; nothing for what heddle does not serve.
struct ComputeType {
  DataType type;
};
Result<ComputeType> compute_type(int value);

enum class Element : uint8_t { kF32, kF64, kC32, kC64, kF16, kMixed };
enum class Shape : uint8_t {
  kIndex,
  kReduce,
  kDot,
  kAxpy,
  kScal,
  kCopy,
  kSwap,
  kRot,
  kRotm,
  kRotg,
  kRotmg,
  kGemv,
  kGbmv,
  kGer,
  kSymv,
  kSbmv,
  kSpmv,
  kSyr,
  kSyr2,
  kSpr,
  kSpr2,
  kTriangular,
  kTriangularBand,
  kTriangularPacked,
  kGemm,
  kSymm,
  kSyrk,
  kSyr2k,
  kSyrkx,
  kTrmm,
  kTrsm,
  kGeam,
  kDgmm,
  kGemmStrided,
  kGemmBatched,
  kSgemmEx,
  kGemmEx,
  kGemmStridedEx,
  kGemmBatchedEx,
};

enum class Kind : uint8_t {
  kOp,
  kFill,
  kSide,
  kDiag,
  kDim,
  kStride,
  kType,
  kCompute,
  kAlgorithm,
  kIn,
  kOut,
  kAnswer,
  kScalar,
  kParameters
};
constexpr uint32_t words_of(Kind kind) {
  return kind == Kind::kScalar ? 2 : kind == Kind::kParameters ? 5 : 1;
}

// The kinds of arguments as types: what C passes for one, where sizes are of type Integer (int, or int64_t in _64).
namespace kinds {
template <Kind kKind>
struct Enumerator {
  static constexpr Kind kKindOf = kKind;
  template <class Integer>
  using Argument = int;
};
template <Kind kKind, class Pointer>
struct Pointing {
  static constexpr Kind kKindOf = kKind;
  template <class Integer>
  using Argument = Pointer;
};
using Op = Enumerator<Kind::kOp>;
using Fill = Enumerator<Kind::kFill>;
using Side = Enumerator<Kind::kSide>;
using Diag = Enumerator<Kind::kDiag>;
using Type = Enumerator<Kind::kType>;
using Compute = Enumerator<Kind::kCompute>;
using Algorithm = Enumerator<Kind::kAlgorithm>;
struct Dim {
  static constexpr Kind kKindOf = Kind::kDim;
  template <class Integer>
  using Argument = Integer;
};
struct Stride {
  static constexpr Kind kKindOf = Kind::kStride;
  template <class Integer>
  using Argument = long long;  // NOLINT(google-runtime-int): cuBLAS's own
};
using In = Pointing<Kind::kIn, const void*>;
using Out = Pointing<Kind::kOut, void*>;
using Answer = Pointing<Kind::kAnswer, void*>;
using Scalar = Pointing<Kind::kScalar, const void*>;
using Parameters = Pointing<Kind::kParameters, const void*>;
}  // namespace kinds

struct Function {
  const char* name;
  Element element;
  Shape shape;
  const char* blas;
  bool twin;  // has a _64 twin
  std::span<const Kind> kinds;

  uint32_t argument_words() const;
};
std::span<const Function> functions();

// The functions' indices, by name: Number::Sgemm_v2.
enum class Number : uint32_t {
#define HEDDLE_NUMBER(name, ...) name,
  HEDDLE_CUBLAS_FUNCTIONS(HEDDLE_NUMBER, HEDDLE_NUMBER)
#undef HEDDLE_NUMBER
};

// What a call takes from its handle.
struct Setting {
  bool wide = false;               // called by its _64 name: sizes and indices have 64 bits
  bool scalars_on_device = false;  // scalars are addresses of device memory
  bool atomics = false;
  uint32_t math_mode = 0;  // cublasMath_t
  uint64_t workspace = 0, workspace_bytes = 0;

  static constexpr uint32_t kWords = 3;
  std::array<uint64_t, kWords> pack() const;
  // kInvalidArgument for bits that mean nothing.
  static Result<Setting> unpack(std::span<const uint64_t> words);
};

// What a scalar of this call takes, in bytes: `words` are the arguments', not yet checked. 0: types that have no
// meaning.
uint32_t scalar_bytes(const Function& function, std::span<const uint64_t> arguments);
// Likewise of what it writes to an Answer.
uint32_t answer_bytes(const Function& function, bool wide);
DataType type_of(Element element);

Result<Demand> demand(const Call& call);

}  // namespace heddle::library::cublas
