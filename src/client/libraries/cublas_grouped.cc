// cublas<t>gemmGroupedBatched: groups of products, each group with sizes of its own, which the program's memory names.
// A group is a batch of products by arrays of addresses, and is called as one; on a GPU a group after the other, too.

#include "client/libraries/cublas_entry.h"

namespace heddle::client {
namespace {

using namespace library::cublas::kinds;  // NOLINT(google-build-using-namespace): the table's words
using library::cublas::Number;

// What describes the groups: an array each, with a place for each group. Types are those of cublasGemmBatchedEx.
template <class Integer>
struct Groups {
  const int *a_ops, *b_ops;
  const Integer *m, *n, *k;
  const void* alpha;
  const void* a;
  int a_type;
  const Integer* lda;
  const void* b;
  int b_type;
  const Integer* ldb;
  const void* beta;
  void* c;
  int c_type;
  const Integer* ldc;
  Integer count;
  const Integer* sizes;
  int compute;
  size_t scalar_bytes;

  bool whole() const {
    return a_ops && b_ops && m && n && k && alpha && lda && ldb && beta && ldc && sizes && count >= 0;
  }
};

template <class T>
T* beyond(T* array, uint64_t bytes) {
  using Bytes = std::conditional_t<std::is_const_v<T>, const char, char>;
  return static_cast<Bytes*>(array) + bytes;
}

template <class Integer>
CublasHandle::Words group(const Groups<Integer>& of, Integer i, uint64_t before) {
  const uint64_t scalars = static_cast<uint64_t>(i) * of.scalar_bytes, addresses = before * sizeof(void*);
  return words_of_call<Integer, Op, Op, Dim, Dim, Dim, Scalar, In, Type, Dim, In, Type, Dim, Scalar, Out, Type, Dim,
                       Dim, Compute, Algorithm>(
      Number::GemmBatchedEx, of.a_ops[i], of.b_ops[i], of.m[i], of.n[i], of.k[i], beyond(of.alpha, scalars),
      beyond(of.a, addresses), of.a_type, of.lda[i], beyond(of.b, addresses), of.b_type, of.ldb[i],
      beyond(of.beta, scalars), beyond(of.c, addresses), of.c_type, of.ldc[i], of.sizes[i], of.compute, -1);
}

// `body(words)` for each group, until one is no success.
template <class Integer, class Body>
Outcome for_each_group(const Groups<Integer>& of, Body&& body) {
  uint64_t before = 0;
  for (Integer i = 0; i < of.count; ++i) {
    if (of.sizes[i] < 0) return Outcome::kInvalidValue;
    auto words = group(of, i, before);
    if (const Outcome outcome = body(words); outcome != Outcome::kSuccess) return outcome;
    before += static_cast<uint64_t>(of.sizes[i]);
  }
  return Outcome::kSuccess;
}

// Nothing is calculated where anything of it is wrong.
template <class Integer>
int multiply(void* handle, const Groups<Integer>& groups) noexcept {
  return answer([&] {
    auto* const known = static_cast<CublasHandle*>(handle);
    if (!known || !known->valid()) return Outcome::kNotInitialized;
    if (known->scalars_on_device) return Outcome::kNotSupported;  // each group's would have to be read here
    if (!groups.whole()) return Outcome::kInvalidValue;
    const Outcome checked = for_each_group(groups, [](auto& words) { return CublasHandle::check(words); });
    if (checked != Outcome::kSuccess) return checked;
    return for_each_group(groups, [&](auto& words) { return known->call(words); });
  });
}

constexpr int kF32 = 0, kF64 = 1, kCompute32 = 68, kCompute64 = 70;

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-macro-usage): each in two widths.
#define HEDDLE_GROUPED(name, suffix, Integer, Real, type, compute)                                               \
  HEDDLE_LIBRARY_EXPORT int cublas##name##suffix(                                                                \
      void* handle, const int* a_ops, const int* b_ops, const Integer* m, const Integer* n, const Integer* k,    \
      const Real* alpha, const void* a, const Integer* lda, const void* b, const Integer* ldb, const Real* beta, \
      void* c, const Integer* ldc, Integer count, const Integer* sizes) {                                        \
    return multiply<Integer>(handle, {a_ops, b_ops, m,    n, k,    alpha, a,     type,  lda,     b,              \
                                      type,  ldb,   beta, c, type, ldc,   count, sizes, compute, sizeof(Real)}); \
  }
#define HEDDLE_GROUPED_TYPED(suffix, Integer)                                                                          \
  HEDDLE_LIBRARY_EXPORT int cublasGemmGroupedBatchedEx##suffix(                                                        \
      void* handle, const int* a_ops, const int* b_ops, const Integer* m, const Integer* n, const Integer* k,          \
      const void* alpha, const void* a, int a_type, const Integer* lda, const void* b, int b_type, const Integer* ldb, \
      const void* beta, void* c, int c_type, const Integer* ldc, Integer count, const Integer* sizes, int compute) {   \
    const auto type = library::cublas::compute_type(compute);                                                          \
    if (!type) return static_cast<int>(Outcome::kNotSupported);                                                        \
    return multiply<Integer>(handle,                                                                                   \
                             {a_ops,  b_ops, m,    n, k,      alpha, a,     a_type, lda,     b,                        \
                              b_type, ldb,   beta, c, c_type, ldc,   count, sizes,  compute, bytes_of(type->type)});   \
  }
HEDDLE_GROUPED(SgemmGroupedBatched, , int, float, kF32, kCompute32)
HEDDLE_GROUPED(SgemmGroupedBatched, _64, int64_t, float, kF32, kCompute32)
HEDDLE_GROUPED(DgemmGroupedBatched, , int, double, kF64, kCompute64)
HEDDLE_GROUPED(DgemmGroupedBatched, _64, int64_t, double, kF64, kCompute64)
HEDDLE_GROUPED_TYPED(, int)
HEDDLE_GROUPED_TYPED(_64, int64_t)
// NOLINTEND(cppcoreguidelines-macro-usage)

}  // namespace heddle::client
