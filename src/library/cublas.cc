#include "library/cublas.h"

#include <algorithm>
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
#define HEDDLE_OLD(old, name, ...) HEDDLE_TWIN(name, __VA_ARGS__)
#define HEDDLE_OLD_ANSWER(old, name, element, shape, blas, answer, ...) \
  HEDDLE_TWIN(name, element, shape, blas, __VA_ARGS__, answer)
// NOLINTEND(cppcoreguidelines-macro-usage)
constexpr Function kFunctions[] = {HEDDLE_CUBLAS_FUNCTIONS(HEDDLE_TWIN, HEDDLE_SINGLE, HEDDLE_OLD, HEDDLE_OLD_ANSWER)};

constexpr uint64_t kWide = 1, kScalarsOnDevice = 2, kAtomics = 4, kFlags = 7, kMathShift = 32;

// The word of the first argument of this kind from `first` on; null: there is none.
const uint64_t* find(const Function& function, std::span<const uint64_t> arguments, Kind kind, size_t first = 0) {
  uint32_t at = 0;
  for (size_t i = 0; i < function.kinds.size(); ++i) {
    if (i >= first && function.kinds[i] == kind) return &arguments[at];
    at += words_of(function.kinds[i]);
  }
  return nullptr;
}

DataType type_at(const uint64_t* word) {
  return static_cast<DataType>(static_cast<int>(*word));
}

// Of a function whose type of calculation is an argument: single precision, complex where the operands are.
uint32_t scalar_bytes(const Function& function, std::span<const uint64_t> arguments) {
  const uint64_t* const compute = find(function, arguments, Kind::kCompute);
  if (!compute) return bytes_of(type_of(function.element));
  const auto type = compute_type(static_cast<int>(*compute));
  if (!type) return 0;
  const DataType operand = type_at(find(function, arguments, Kind::kType));
  return bytes_of(is_complex(operand) ? operand : type->type);
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
    case 70:  // 64F, PEDANTIC, EMULATED_FIXEDPOINT
    case 71:
    case 79:
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
    default:  // what is calculated in
      return DataType::kF32;
  }
}

DataType operand_type(Element element) {
  if (element == Element::kHsh || element == Element::kHss) return DataType::kF16;
  if (element == Element::kTst || element == Element::kTss) return DataType::kBf16;
  return type_of(element);
}

DataType result_type(Element element) {
  if (element == Element::kHss || element == Element::kTss) return DataType::kF32;
  return operand_type(element);
}

bool is_complex(DataType type) {
  return type == DataType::kC32 || type == DataType::kC64;
}

DataType real_of(DataType type) {
  if (type == DataType::kC32) return DataType::kF32;
  return type == DataType::kC64 ? DataType::kF64 : type;
}

uint32_t value_bytes(const Function& function, std::span<const uint64_t> arguments, size_t index, bool wide) {
  const DataType type = type_of(function.element);
  switch (function.kinds[index]) {
    case Kind::kScalar:
      return scalar_bytes(function, arguments);
    case Kind::kAnswer:
    case Kind::kParameters:
    case Kind::kIn:  // of rotmg
      if (function.element != Element::kMixed) return bytes_of(type);
      [[fallthrough]];
    case Kind::kTypedAnswer:
    case Kind::kTypedScalar:
    case Kind::kTypedParameters:
      return bytes_of(type_at(find(function, arguments, Kind::kType, index)));
    case Kind::kRealScalar:
    case Kind::kRealAnswer:
      return bytes_of(real_of(type));
    case Kind::kIndexAnswer:
      return wide ? 8 : 4;
    default:
      return 0;
  }
}

bool Function::has(Kind kind) const {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
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
