// The table of cuBLAS's functions against the toolkit's header, where there is one. Compiling it is the test: each
// function's arguments are as many, of the kinds, and of the elements that its line says; so are those of cublas.h.

#include <gtest/gtest.h>

#include <type_traits>

#include "library/cublas.h"
#include "library/cublas_functions.h"

// After ours: the toolkit's macros may not touch our names.
#include <cublas.h>

// Inline forms of C++ stand beside these, so that their addresses are ambiguous: their twins are looked at twice.
#define cublasGemmEx cublasGemmEx_64
#define cublasGemmBatchedEx cublasGemmBatchedEx_64
#define cublasGemmStridedBatchedEx cublasGemmStridedBatchedEx_64

namespace heddle::library::cublas {
namespace {

using namespace kinds;  // NOLINT(google-build-using-namespace): the table's words

template <Element kElement>
struct Types {  // what is calculated in, and its real part; void: arguments say
  using Whole = void;
  using Real = void;
  using Operand = void;
};
#define HEDDLE_TYPES(element, whole, real, operand) \
  template <>                                       \
  struct Types<Element::element> {                  \
    using Whole = whole;                            \
    using Real = real;                              \
    using Operand = operand;                        \
  }
HEDDLE_TYPES(kF32, float, float, float);
HEDDLE_TYPES(kF64, double, double, double);
HEDDLE_TYPES(kC32, cuComplex, float, cuComplex);
HEDDLE_TYPES(kC64, cuDoubleComplex, double, cuDoubleComplex);
HEDDLE_TYPES(kF16, __half, __half, __half);
HEDDLE_TYPES(kHsh, float, float, __half);
HEDDLE_TYPES(kHss, float, float, __half);
HEDDLE_TYPES(kTst, float, float, __nv_bfloat16);
HEDDLE_TYPES(kTss, float, float, __nv_bfloat16);

// What a pointer points to in the end, through arrays of pointers.
template <class T>
struct Pointee {
  using Type = std::remove_cv_t<T>;
};
template <class T>
requires std::is_pointer_v<T>
struct Pointee<T> {
  using Type = typename Pointee<std::remove_cv_t<std::remove_pointer_t<T>>>::Type;
};

template <class Pointer, class Value>
constexpr bool kPointsTo = std::is_pointer_v<Pointer> &&
                           (std::is_same_v<typename Pointee<Pointer>::Type, Value> ||
                            std::is_void_v<typename Pointee<Pointer>::Type> || std::is_void_v<Value>);
// Whether the matrices or values that it leads to may be changed through it.
template <class Pointer>
constexpr bool kIsConst = std::is_const_v<std::remove_pointer_t<Pointer>>;
template <class Pointer>
requires std::is_pointer_v<std::remove_cv_t<std::remove_pointer_t<Pointer>>>
constexpr bool kIsConst<Pointer> = kIsConst<std::remove_cv_t<std::remove_pointer_t<Pointer>>>;

template <class K, Element kElement, class Integer, class Given>
constexpr bool fits() {
  using Whole = typename Types<kElement>::Whole;
  using Real = typename Types<kElement>::Real;
  constexpr bool kHalf = kElement >= Element::kHsh && kElement <= Element::kTss;
  switch (K::kKindOf) {
    case Kind::kOp:
      return std::is_same_v<Given, cublasOperation_t>;
    case Kind::kFill:
      return std::is_same_v<Given, cublasFillMode_t>;
    case Kind::kSide:
      return std::is_same_v<Given, cublasSideMode_t>;
    case Kind::kDiag:
      return std::is_same_v<Given, cublasDiagType_t>;
    case Kind::kDim:
      return std::is_same_v<Given, Integer>;
    case Kind::kStride:
      return std::is_same_v<Given, long long>;
    case Kind::kType:
      return std::is_same_v<Given, cudaDataType>;
    case Kind::kCompute:
      return std::is_same_v<Given, cublasComputeType_t>;
    case Kind::kAlgorithm:
      return std::is_same_v<Given, cublasGemmAlgo_t>;
    case Kind::kIn:  // or pivots
      return kIsConst<Given> && (kPointsTo<Given, typename Types<kElement>::Operand> || kPointsTo<Given, int>);
    case Kind::kOut:  // or pivots, or what went wrong
      return !kIsConst<Given> && (kPointsTo<Given, typename Types<kElement>::Operand> || kPointsTo<Given, int> ||
                                  (kHalf && kPointsTo<Given, float>));
    case Kind::kAnswer:
    case Kind::kTypedAnswer:
      return !kIsConst<Given> && kPointsTo<Given, Whole>;
    case Kind::kRealAnswer:
      return !kIsConst<Given> && kPointsTo<Given, Real>;
    case Kind::kIndexAnswer:
      return std::is_same_v<Given, Integer*>;
    case Kind::kScalar:
    case Kind::kTypedScalar:
    case Kind::kParameters:
    case Kind::kTypedParameters:
      return kIsConst<Given> && (kPointsTo<Given, Whole> || kElement == Element::kMixed);
    case Kind::kRealScalar:
      return kIsConst<Given> && kPointsTo<Given, Real>;
    case Kind::kInfo:
      return std::is_same_v<Given, int*>;
  }
  return false;
}

template <Element kElement, class Integer, class... Kinds, class... Given>
constexpr bool check(cublasStatus_t (*)(cublasHandle_t, Given...)) {
  if constexpr (sizeof...(Kinds) != sizeof...(Given))
    return false;
  else
    return (fits<Kinds, kElement, Integer, Given>() && ...);
}

// By cublas.h.
template <class K, Element kElement, class Given>
constexpr bool fits_old() {
  switch (K::kKindOf) {
    case Kind::kOp:
    case Kind::kFill:
    case Kind::kSide:
    case Kind::kDiag:
      return std::is_same_v<Given, char>;
    case Kind::kScalar:
    case Kind::kAnswer:
      return std::is_same_v<Given, typename Types<kElement>::Whole>;
    case Kind::kRealScalar:
    case Kind::kRealAnswer:
      return std::is_same_v<Given, typename Types<kElement>::Real>;
    case Kind::kIndexAnswer:
      return std::is_same_v<Given, int>;
    default:
      return fits<K, kElement, int, Given>();
  }
}
template <Element kElement, class... Kinds, class... Given>
constexpr bool check_old(void (*)(Given...)) {
  if constexpr (sizeof...(Kinds) != sizeof...(Given))
    return false;
  else
    return (fits_old<Kinds, kElement, Given>() && ...);
}
template <Element kElement, class Answered, class... Kinds, class Returned, class... Given>
constexpr bool check_old_answer(Returned (*)(Given...)) {
  if constexpr (sizeof...(Kinds) != sizeof...(Given))
    return false;
  else
    return fits_old<Answered, kElement, Returned>() && (fits_old<Kinds, kElement, Given>() && ...);
}

#define HEDDLE_CHECK(name, element, shape, blas, ...)                             \
  static_assert(check<Element::element, int, __VA_ARGS__>(&cublas##name) ||       \
                    check<Element::element, int64_t, __VA_ARGS__>(&cublas##name), \
                #name);
#define HEDDLE_CHECK_TWIN(name, element, shape, blas, ...) \
  HEDDLE_CHECK(name, element, shape, blas, __VA_ARGS__)    \
  static_assert(check<Element::element, int64_t, __VA_ARGS__>(&cublas##name##_64), #name "_64");
#define HEDDLE_CHECK_OLD(old, name, element, shape, blas, ...) \
  HEDDLE_CHECK_TWIN(name, element, shape, blas, __VA_ARGS__)   \
  static_assert(check_old<Element::element, __VA_ARGS__>(&cublas##old), #old);
#define HEDDLE_CHECK_OLD_ANSWER(old, name, element, shape, blas, answer, ...) \
  HEDDLE_CHECK_TWIN(name, element, shape, blas, __VA_ARGS__, answer)          \
  static_assert(check_old_answer<Element::element, answer, __VA_ARGS__>(&cublas##old), #old);
HEDDLE_CUBLAS_FUNCTIONS(HEDDLE_CHECK_TWIN, HEDDLE_CHECK, HEDDLE_CHECK_OLD, HEDDLE_CHECK_OLD_ANSWER)

TEST(CublasHeader, KnowsWhatTheTableSays) {
  EXPECT_FALSE(functions().empty());
}

}  // namespace
}  // namespace heddle::library::cublas
