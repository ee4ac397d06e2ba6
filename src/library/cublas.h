#pragma once

#include <array>

#include "library/call.h"
#include "library/cublas_functions.h"

// cuBLAS: its calls as words, and what the words mean. The words of a call: those of Setting, then the arguments in
// order, one word each; a scalar takes two (its value, or its address in device memory), the parameters of rotm five.
//
// What an address is, its kind says: kIn and kOut lie in device memory, and where `shape` says so are arrays of
// addresses that lie there too; a scalar and its parameters lie where the handle's pointer mode has them; so does an
// answer, whose word is always an address of device memory when it reaches the worker (client/libraries/cublas_handle);
// kInfo lies on the host: the program answers it, and the worker's library writes it to nowhere.
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

// Of what operands hold. kHsh and its kin: half precision or bfloat16 (T) by single precision, the last letter is the
// result's. kMixed: types are arguments.
enum class Element : uint8_t { kF32, kF64, kC32, kC64, kF16, kHsh, kHss, kTst, kTss, kMixed };
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
  kSyrkEx,
  kGemvStrided,
  kGemvBatched,
  kTrsmBatched,
  kTpttr,
  kTrttp,
  kGetrf,
  kGetri,
  kGetrs,
  kMatinv,
  kGeqrf,
  kGels,
  kIndexEx,
  kReduceEx,
  kDotEx,
  kAxpyEx,
  kScalEx,
  kCopyEx,
  kSwapEx,
  kRotEx,
  kRotmEx,
  kRotgEx,
  kRotmgEx,
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
  kAnswer,           // of the function's element
  kRealAnswer,       // of its real part's type
  kTypedAnswer,      // of the type that is the next Type argument
  kIndexAnswer,      // an index: 32 bits, or 64 in _64
  kScalar,           // likewise
  kRealScalar,       // ...
  kTypedScalar,      // ...
  kParameters,       // five of the function's element
  kTypedParameters,  // ...
  kInfo,
};
constexpr bool is_answer(Kind kind) {
  return kind >= Kind::kAnswer && kind <= Kind::kIndexAnswer;
}
constexpr bool is_scalar(Kind kind) {
  return kind >= Kind::kScalar && kind <= Kind::kTypedScalar;
}
constexpr bool is_parameters(Kind kind) {
  return kind == Kind::kParameters || kind == Kind::kTypedParameters;
}
constexpr uint32_t words_of(Kind kind) {
  return is_scalar(kind) ? 2 : is_parameters(kind) ? 5 : 1;
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
using RealAnswer = Pointing<Kind::kRealAnswer, void*>;
using TypedAnswer = Pointing<Kind::kTypedAnswer, void*>;
using IndexAnswer = Pointing<Kind::kIndexAnswer, void*>;
using Scalar = Pointing<Kind::kScalar, const void*>;
using RealScalar = Pointing<Kind::kRealScalar, const void*>;
using TypedScalar = Pointing<Kind::kTypedScalar, const void*>;
using Parameters = Pointing<Kind::kParameters, const void*>;
using TypedParameters = Pointing<Kind::kTypedParameters, const void*>;
using Info = Pointing<Kind::kInfo, int*>;
}  // namespace kinds

struct Function {
  const char* name;
  Element element;
  Shape shape;
  const char* blas;
  bool twin;  // has a _64 twin
  std::span<const Kind> kinds;

  uint32_t argument_words() const;
  bool has(Kind kind) const;
};
std::span<const Function> functions();

// The functions' indices, by name: Number::Sgemm_v2.
enum class Number : uint32_t {
#define HEDDLE_NUMBER(name, ...) name,
#define HEDDLE_OLD_NUMBER(old, name, ...) name,
  HEDDLE_CUBLAS_FUNCTIONS(HEDDLE_NUMBER, HEDDLE_NUMBER, HEDDLE_OLD_NUMBER, HEDDLE_OLD_NUMBER)
#undef HEDDLE_NUMBER
#undef HEDDLE_OLD_NUMBER
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

// What the value behind argument `index` takes, in bytes: a scalar, one of five parameters, an answer. `arguments` are
// the arguments' words, not yet checked. 0: its type has no meaning.
uint32_t value_bytes(const Function& function, std::span<const uint64_t> arguments, size_t index, bool wide);
// What scalars are of.
DataType type_of(Element element);
DataType operand_type(Element element);
DataType result_type(Element element);
DataType real_of(DataType type);
bool is_complex(DataType type);

Result<Demand> demand(const Call& call);

}  // namespace heddle::library::cublas
