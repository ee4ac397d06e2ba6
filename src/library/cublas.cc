#include "library/cublas.h"

#include <numeric>

namespace heddle::library::cublas {
namespace {

using namespace kinds;  // NOLINT(google-build-using-namespace): the table's words

template <class... Kinds>
constexpr Kind kKinds[] = {Kinds::kKindOf...};

// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define HEDDLE_TWIN(name, element, shape, blas, ...) \
  {"cublas" #name, Element::element, Shape::shape, blas, true, kKinds<__VA_ARGS__>},
#define HEDDLE_SINGLE(name, element, shape, blas, ...) \
  {"cublas" #name, Element::element, Shape::shape, blas, false, kKinds<__VA_ARGS__>},
// NOLINTEND(cppcoreguidelines-macro-usage)
constexpr Function kFunctions[] = {HEDDLE_CUBLAS_FUNCTIONS(HEDDLE_TWIN, HEDDLE_SINGLE)};

constexpr uint64_t kWide = 1, kScalarsOnDevice = 2, kAtomics = 4, kFlags = 7, kMathShift = 32;

// Where in the arguments' words the `nth` argument of this kind stands.
const uint64_t* find(const Function& function, std::span<const uint64_t> arguments, Kind kind) {
  uint32_t at = 0;
  for (const Kind each : function.kinds) {
    if (each == kind) return &arguments[at];
    at += words_of(each);
  }
  return nullptr;
}

}  // namespace

std::span<const Function> functions() {
  return kFunctions;
}

uint32_t Function::argument_words() const {
  return std::accumulate(kinds.begin(), kinds.end(), 0u, [](uint32_t sum, Kind kind) { return sum + words_of(kind); });
}

uint32_t bytes_of(DataType type) {
  switch (type) {
    case DataType::kI8:
      return 1;
    case DataType::kF16:
    case DataType::kBf16:
      return 2;
    case DataType::kF32:
    case DataType::kI32:
      return 4;
    case DataType::kF64:
    case DataType::kC32:
      return 8;
    case DataType::kC64:
      return 16;
  }
  return 0;
}

Result<ComputeType> compute_type(int value) {
  switch (value) {
    case 64:  // CUBLAS_COMPUTE_16F and its PEDANTIC
    case 65:
      return ComputeType{DataType::kF16};
    case 68:  // 32F, PEDANTIC, FAST_16F, FAST_16BF, FAST_TF32, EMULATED_16BFX9
    case 69:
    case 74:
    case 75:
    case 77:
    case 78:
      return ComputeType{DataType::kF32};
    case 70:  // 64F and its PEDANTIC
    case 71:
      return ComputeType{DataType::kF64};
    case 72:  // 32I and its PEDANTIC
    case 73:
      return ComputeType{DataType::kI32};
    default:
      break;
  }
  const auto type = static_cast<DataType>(value);
  if (value < 64 && type != DataType::kI8 && type != DataType::kBf16 && bytes_of(type) > 0) return ComputeType{type};
  return fail(ErrorCode::kNotSupported, "compute type %d is not supported", value);
}

DataType type_of(Element element) {
  switch (element) {
    case Element::kF64:
      return DataType::kF64;
    case Element::kC32:
      return DataType::kC32;
    case Element::kC64:
      return DataType::kC64;
    case Element::kF16:
      return DataType::kF16;
    case Element::kF32:
    case Element::kMixed:  // SgemmEx: what it calculates in
      break;
  }
  return DataType::kF32;
}

uint32_t scalar_bytes(const Function& function, std::span<const uint64_t> arguments) {
  const uint64_t* compute = find(function, arguments, Kind::kCompute);
  if (!compute) return bytes_of(type_of(function.element));
  const auto type = compute_type(static_cast<int>(*compute));
  if (!type) return 0;
  // In single precision, complex where the operands are.
  const auto operand = static_cast<DataType>(*find(function, arguments, Kind::kType));
  if (operand == DataType::kC32 || operand == DataType::kC64) return bytes_of(operand);
  return bytes_of(type->type);
}

uint32_t answer_bytes(const Function& function, bool wide) {
  if (function.shape == Shape::kIndex) return wide ? 8 : 4;
  return bytes_of(type_of(function.element));
}

std::array<uint64_t, Setting::kWords> Setting::pack() const {
  const uint64_t flags = (wide ? kWide : 0) | (scalars_on_device ? kScalarsOnDevice : 0) | (atomics ? kAtomics : 0);
  return {flags | uint64_t{math_mode} << kMathShift, workspace, workspace_bytes};
}

Result<Setting> Setting::unpack(std::span<const uint64_t> words) {
  if (words.size() < kWords) return fail(ErrorCode::kInvalidArgument, "a cuBLAS call of %zu words", words.size());
  const auto flags = static_cast<uint32_t>(words[0]);
  if (flags & ~kFlags) return fail(ErrorCode::kInvalidArgument, "a cuBLAS call with flags %#x", flags);
  return Setting{(flags & kWide) != 0,
                 (flags & kScalarsOnDevice) != 0,
                 (flags & kAtomics) != 0,
                 static_cast<uint32_t>(words[0] >> kMathShift),
                 words[1],
                 words[2]};
}

}  // namespace heddle::library::cublas
