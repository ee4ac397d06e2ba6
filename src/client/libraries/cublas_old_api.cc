// The interface of cublas.h: no handle, letters for enumerators, scalars by value, answers returned, and the status
// kept for cublasGetError. The table (library/cublas_functions.h) says which functions have it.

#include <utility>

#include "client/libraries/cublas_entry.h"

namespace heddle::client {

HEDDLE_LIBRARY_EXPORT int cublasCreate_v2(void** handle);  // cublas_api.cc
HEDDLE_LIBRARY_EXPORT int cublasDestroy_v2(void* handle);
HEDDLE_LIBRARY_EXPORT int cublasSetStream_v2(void* handle, void* stream);
HEDDLE_LIBRARY_EXPORT int cublasGetVersion_v2(void* handle, int* version);

namespace {

using namespace library::cublas::kinds;  // NOLINT(google-build-using-namespace): the table's words
using library::cublas::Element;
using library::cublas::Kind;
using library::cublas::Number;

// As C passes cuComplex and cuDoubleComplex.
struct alignas(8) Single {
  float real, imaginary;
};
struct alignas(16) Double {
  double real, imaginary;
};

template <Element kElement>
struct Values;
template <>
struct Values<Element::kF32> {
  using Whole = float;
  using Real = float;
};
template <>
struct Values<Element::kF64> {
  using Whole = double;
  using Real = double;
};
template <>
struct Values<Element::kC32> {
  using Whole = Single;
  using Real = float;
};
template <>
struct Values<Element::kC64> {
  using Whole = Double;
  using Real = double;
};

constexpr bool is_letter(Kind kind) {
  return kind == Kind::kOp || kind == Kind::kFill || kind == Kind::kSide || kind == Kind::kDiag;
}

// What an argument of the kind is here.
template <Element kElement, Kind kKind, class Usual>
struct OldType {
  using Type = Usual;
};
template <Element kElement, Kind kKind, class Usual>
requires(is_letter(kKind)) struct OldType<kElement, kKind, Usual> {
  using Type = char;
};
template <Element kElement, class Usual>
struct OldType<kElement, Kind::kScalar, Usual> {
  using Type = typename Values<kElement>::Whole;
};
template <Element kElement, class Usual>
struct OldType<kElement, Kind::kRealScalar, Usual> {
  using Type = typename Values<kElement>::Real;
};
template <Element kElement, class Usual>
struct OldType<kElement, Kind::kAnswer, Usual> {
  using Type = typename Values<kElement>::Whole;
};
template <Element kElement, class Usual>
struct OldType<kElement, Kind::kRealAnswer, Usual> {
  using Type = typename Values<kElement>::Real;
};
template <Element kElement, class Usual>
struct OldType<kElement, Kind::kIndexAnswer, Usual> {
  using Type = int;
};
template <Element kElement, class K>
using Old = typename OldType<kElement, K::kKindOf, typename K::template Argument<int>>::Type;

// -1: no letter of the kind.
int enumerator(Kind kind, char letter) {
  const std::pair<char, const char*> known[] = {{'N', "nN"}, {'T', "tT"}, {'C', "cC"},
                                                {'L', "lL"}, {'U', "uU"}, {'R', "rR"}};
  char which = 0;
  for (const auto& [name, letters] : known) {
    if (letter == letters[0] || letter == letters[1]) which = name;
  }
  switch (kind) {
    case Kind::kOp:
      return which == 'N' ? 0 : which == 'T' ? 1 : which == 'C' ? 2 : -1;
    case Kind::kSide:
      return which == 'L' ? 0 : which == 'R' ? 1 : -1;
    case Kind::kFill:
      return which == 'L' ? 0 : which == 'U' ? 1 : -1;
    default:
      return which == 'N' ? 0 : which == 'U' ? 1 : -1;
  }
}

// As the functions with handles take it; scalars by the address of the argument, which lives as long as the call.
template <Element kElement, class K>
typename K::template Argument<int> given(const Old<kElement, K>& value) {
  if constexpr (is_letter(K::kKindOf))
    return enumerator(K::kKindOf, value);
  else if constexpr (is_scalar(K::kKindOf))
    return &value;
  else
    return value;
}

struct State {
  std::mutex mutex;
  void* handle = nullptr;
  int status = 0;

  void* of_now() {
    const std::lock_guard lock(mutex);
    return handle;
  }
  int note(int outcome) {
    const std::lock_guard lock(mutex);
    if (outcome != 0) status = outcome;
    return outcome;
  }
};
State& state() {
  static auto* const the_state = new State;
  return *the_state;
}

template <Element kElement, class... Kinds>
void call_old(Number number, const Old<kElement, Kinds>&... arguments) noexcept {
  state().note(enter<int, Kinds...>(number, state().of_now(), given<kElement, Kinds>(arguments)...));
}
template <Element kElement, class Answered, class... Kinds>
Old<kElement, Answered> ask_old(Number number, const Old<kElement, Kinds>&... arguments) noexcept {
  Old<kElement, Answered> answered{};
  state().note(
      enter<int, Kinds..., Answered>(number, state().of_now(), given<kElement, Kinds>(arguments)..., &answered));
  return answered;
}

}  // namespace

HEDDLE_LIBRARY_EXPORT int cublasInit() {
  const std::lock_guard lock(state().mutex);
  return state().handle ? 0 : cublasCreate_v2(&state().handle);
}

HEDDLE_LIBRARY_EXPORT int cublasShutdown() {
  const std::lock_guard lock(state().mutex);
  return cublasDestroy_v2(std::exchange(state().handle, nullptr));
}

HEDDLE_LIBRARY_EXPORT int cublasGetError() {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().status, 0);
}

HEDDLE_LIBRARY_EXPORT int cublasGetVersion(int* version) {
  return cublasGetVersion_v2(nullptr, version);
}

HEDDLE_LIBRARY_EXPORT int cublasSetKernelStream(void* stream) {
  return state().note(cublasSetStream_v2(state().of_now(), stream));
}

HEDDLE_LIBRARY_EXPORT int cublasAlloc(int count, int element_bytes, void** device) {
  return state().note(answer([&] {
    if (count <= 0 || element_bytes <= 0 || !device) return Outcome::kInvalidValue;
    const heddle_library_functions* const runtime = library_runtime();
    if (!runtime) return Outcome::kNotInitialized;
    return outcome_of(runtime->allocate(device, static_cast<size_t>(count) * static_cast<size_t>(element_bytes)));
  }));
}

HEDDLE_LIBRARY_EXPORT int cublasFree(void* device) {
  return state().note(answer([&] {
    const heddle_library_functions* const runtime = library_runtime();
    return runtime ? outcome_of(runtime->release(device)) : Outcome::kNotInitialized;
  }));
}

// ---- The table's functions ----

// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define HEDDLE_NONE(...)
#define HEDDLE_OLD_FORM(old, name, element, shape, blas, ...)                                    \
  HEDDLE_LIBRARY_EXPORT void cublas##old(HEDDLE_OLD_PARAMETERS(Element::element, __VA_ARGS__)) { \
    call_old<Element::element, __VA_ARGS__>(Number::name, HEDDLE_ARGUMENTS(__VA_ARGS__));        \
  }
#define HEDDLE_OLD_FUNCTION(old, name, element, shape, blas, answer, ...)                               \
  HEDDLE_LIBRARY_EXPORT Old<Element::element, answer> cublas##old(                                      \
      HEDDLE_OLD_PARAMETERS(Element::element, __VA_ARGS__)) {                                           \
    return ask_old<Element::element, answer, __VA_ARGS__>(Number::name, HEDDLE_ARGUMENTS(__VA_ARGS__)); \
  }
HEDDLE_CUBLAS_FUNCTIONS(HEDDLE_NONE, HEDDLE_NONE, HEDDLE_OLD_FORM, HEDDLE_OLD_FUNCTION)

// ---- Those that differ by more ----

// B becomes the product; the newer form has a third matrix.
#define HEDDLE_OLD_TRMM(letter, element)                                                                         \
  HEDDLE_LIBRARY_EXPORT void cublas##letter##trmm(char side, char fill, char op, char diag, int m, int n,        \
                                                  Values<Element::element>::Whole alpha, const void* a, int lda, \
                                                  void* b, int ldb) {                                            \
    call_old<Element::element, Side, Fill, Op, Diag, Dim, Dim, Scalar, In, Dim, In, Dim, Out, Dim>(              \
        Number::letter##trmm_v2, side, fill, op, diag, m, n, alpha, a, lda, b, ldb, b, ldb);                     \
  }
HEDDLE_OLD_TRMM(S, kF32)
HEDDLE_OLD_TRMM(D, kF64)
HEDDLE_OLD_TRMM(C, kC32)
HEDDLE_OLD_TRMM(Z, kC64)

// Their values are on the host, and are all answers.
#define HEDDLE_OLD_ROTATIONS(letter)                                                                                 \
  HEDDLE_LIBRARY_EXPORT void cublas##letter##rotg(void* a, void* b, void* c, void* s) {                              \
    state().note(enter<int, Answer, Answer, Answer, Answer>(Number::letter##rotg_v2, state().of_now(), a, b, c, s)); \
  }                                                                                                                  \
  HEDDLE_LIBRARY_EXPORT void cublas##letter##rotmg(void* d1, void* d2, void* x1, const void* y1, void* parameters) { \
    state().note(enter<int, Answer, Answer, Answer, In, Answer>(Number::letter##rotmg_v2, state().of_now(), d1, d2,  \
                                                                x1, y1, parameters));                                \
  }
HEDDLE_OLD_ROTATIONS(S)
HEDDLE_OLD_ROTATIONS(D)

#define HEDDLE_OLD_COMPLEX_ROTATION(letter, element)                                                              \
  HEDDLE_LIBRARY_EXPORT void cublas##letter##rotg(void* a, Values<Element::element>::Whole b, void* c, void* s) { \
    state().note(                                                                                                 \
        enter<int, Answer, Answer, RealAnswer, Answer>(Number::letter##rotg_v2, state().of_now(), a, &b, c, s));  \
  }
HEDDLE_OLD_COMPLEX_ROTATION(C, kC32)
HEDDLE_OLD_COMPLEX_ROTATION(Z, kC64)
// NOLINTEND(cppcoreguidelines-macro-usage)

}  // namespace heddle::client
