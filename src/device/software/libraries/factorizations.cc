#include "device/software/libraries/factorizations.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "device/software/libraries/element_types.h"

namespace heddle::software {
namespace {

using library::cublas::DataType;
using library::cublas::Function;
using library::cublas::Shape;

// LAPACK's workspace for so many columns, 32 of them at once; for fewer where that is more than it can count.
int32_t workspace(int64_t columns, int64_t besides = 0) {
  constexpr int64_t kBlock = 32;
  const int64_t wanted = std::max<int64_t>(1, columns * kBlock + besides);
  return static_cast<int32_t>(std::min<int64_t>(wanted, INT32_MAX));
}

// LAPACK's subroutines for matrices of one type, their pivots and workspaces.
template <class Number>
class Lapack {
 public:
  Lapack(DataType type, const Openblas& blas) : type_(type), blas_(blas) {}

  int32_t factorize(int32_t n, Number* a, int32_t ld, int32_t* pivots) const {
    int32_t info = 0;
    call("getrf_", &n, &n, a, &ld, pivots, &info);
    return info;
  }
  int32_t invert(int32_t n, Number* a, int32_t ld, const int32_t* pivots) const {
    int32_t info = 0, size = workspace(n);
    std::vector<Number> work(static_cast<size_t>(size));
    call("getri_", &n, a, &ld, pivots, work.data(), &size, &info);
    return info;
  }
  void solve(char op, int32_t n, int32_t columns, const Number* a, int32_t lda, const int32_t* pivots, Number* b,
             int32_t ldb) const {
    int32_t info = 0;
    call("getrs_", &op, &n, &columns, a, &lda, pivots, b, &ldb, &info);
  }
  void orthogonalize(int32_t m, int32_t n, Number* a, int32_t ld, Number* factors) const {
    int32_t info = 0, size = workspace(n);
    std::vector<Number> work(static_cast<size_t>(size));
    call("geqrf_", &m, &n, a, &ld, factors, work.data(), &size, &info);
  }
  int32_t least_squares(int32_t m, int32_t n, int32_t columns, Number* a, int32_t lda, Number* c, int32_t ldc) const {
    int32_t info = 0, size = workspace(std::max({1, m, n, columns}), std::min(m, n));
    std::vector<Number> work(static_cast<size_t>(size));
    const char op = 'N';
    call("gels_", &op, &m, &n, &columns, a, &lda, c, &ldc, work.data(), &size, &info);
    return info;
  }

 private:
  template <class... Pointers>
  void call(const char* base, Pointers... pointers) const {
    reinterpret_cast<void (*)(Pointers...)>(blas_.function(symbol(type_, base).c_str()))(pointers...);
  }

  const DataType type_;
  const Openblas& blas_;
};

template <class Number>
Number& element_of(Number* matrix, int32_t ld, int32_t row, int32_t column) {
  return matrix[row + int64_t{column} * ld];
}

// LAPACK always looks for pivots. The number of the first that is 0, counted from 1; 0: there is none.
template <class Number>
int32_t factorize_without_pivots(int32_t n, Number* a, int32_t ld) {
  int32_t failure = 0;
  for (int32_t k = 0; k < n; ++k) {
    const Number pivot = element_of(a, ld, k, k);
    if (pivot == Number{}) {
      if (failure == 0) failure = k + 1;
      continue;
    }
    for (int32_t i = k + 1; i < n; ++i) element_of(a, ld, i, k) /= pivot;
    for (int32_t j = k + 1; j < n; ++j) {
      for (int32_t i = k + 1; i < n; ++i) element_of(a, ld, i, j) -= element_of(a, ld, i, k) * element_of(a, ld, k, j);
    }
  }
  return failure;
}

template <class Number>
void copy_square(int32_t n, const Number* from, int32_t from_ld, Number* to, int32_t to_ld) {
  for (int64_t column = 0; column < n; ++column)
    std::memmove(to + column * to_ld, from + column * from_ld, static_cast<size_t>(n) * sizeof(Number));
}

// Row k was exchanged with row pivots[k - 1]; without pivots with itself.
std::vector<int32_t> own_pivots(int32_t n) {
  std::vector<int32_t> pivots(static_cast<size_t>(n));
  std::iota(pivots.begin(), pivots.end(), 1);
  return pivots;
}

// One batch after the other, with what a function's arguments are called where it is defined.
template <class Number>
class Batches {
 public:
  Batches(const CallArguments& arguments, DataType type, const Openblas& blas)
      : arguments_(arguments), lapack_(type, blas) {}

  // n, A, lda, pivots, failures, batch
  void factorize() const {
    const int32_t n = arguments_.number(0);
    auto* pivots = integers(3);
    for_each(5, [&](size_t i) {
      Number* const a = matrix(1, i);
      integers(4)[i] = pivots ? lapack_.factorize(n, a, arguments_.number(2), pivots)
                              : factorize_without_pivots(n, a, arguments_.number(2));
      if (pivots) pivots += n;
    });
  }
  // n, A, lda, pivots, C, ldc, failures, batch
  void invert() const {
    const int32_t n = arguments_.number(0), ld = arguments_.number(5);
    const auto own = own_pivots(n);
    const int32_t* const pivots = integers(3);
    for_each(7, [&](size_t i) {
      Number* const c = matrix(4, i);
      copy_square(n, matrix(1, i), arguments_.number(2), c, ld);
      integers(6)[i] = lapack_.invert(n, c, ld, pivots ? pivots + i * static_cast<size_t>(n) : own.data());
    });
  }
  // op, n, columns, A, lda, pivots, B, ldb, info, batch
  void solve() const {
    const int32_t n = arguments_.number(1);
    const auto own = own_pivots(n);
    const int32_t* const pivots = integers(5);
    for_each(9, [&](size_t i) {
      lapack_.solve(arguments_.letter(0), n, arguments_.number(2), matrix(3, i), arguments_.number(4),
                    pivots ? pivots + i * static_cast<size_t>(n) : own.data(), matrix(6, i), arguments_.number(7));
    });
  }
  // n, A, lda, inverse, ld, failures, batch
  void invert_small() const {
    const int32_t n = arguments_.number(0), ld = std::max(1, n);
    std::vector<Number> copy(static_cast<size_t>(n) * static_cast<size_t>(n));
    auto pivots = own_pivots(n);
    for_each(6, [&](size_t i) {
      copy_square(n, matrix(1, i), arguments_.number(2), copy.data(), ld);
      int32_t& failure = integers(5)[i];
      failure = lapack_.factorize(n, copy.data(), ld, pivots.data());
      if (failure == 0) failure = lapack_.invert(n, copy.data(), ld, pivots.data());
      if (failure == 0) copy_square(n, copy.data(), ld, matrix(3, i), arguments_.number(4));
    });
  }
  // m, n, A, lda, factors, info, batch
  void orthogonalize() const {
    for_each(6, [&](size_t i) {
      lapack_.orthogonalize(arguments_.number(0), arguments_.number(1), matrix(2, i), arguments_.number(3),
                            matrix(4, i));
    });
  }
  // op, m, n, columns, A, lda, C, ldc, info, failures, batch
  void least_squares() const {
    for_each(10, [&](size_t i) {
      const int32_t failure =
          lapack_.least_squares(arguments_.number(1), arguments_.number(2), arguments_.number(3), matrix(4, i),
                                arguments_.number(5), matrix(6, i), arguments_.number(7));
      if (int32_t* const failures = integers(9)) failures[i] = failure;
    });
  }

 private:
  template <class Body>
  void for_each(size_t batch, Body&& body) const {
    for (int32_t i = 0; i < arguments_.number(batch); ++i) body(static_cast<size_t>(i));
  }
  Number* matrix(size_t argument, size_t i) const { return static_cast<Number*>(arguments_.element(argument, i)); }
  int32_t* integers(size_t argument) const { return static_cast<int32_t*>(arguments_.at(argument)); }

  const CallArguments& arguments_;
  const Lapack<Number> lapack_;
};

}  // namespace

void run_factorization(const Function& function, const CallArguments& arguments, const Openblas& blas) {
  const DataType type = type_of(function.element);
  with_type(type, [&](auto zero) {
    const Batches<decltype(zero)> batches(arguments, type, blas);
    switch (function.shape) {
      case Shape::kGetrf:
        return batches.factorize();
      case Shape::kGetri:
        return batches.invert();
      case Shape::kGetrs:
        return batches.solve();
      case Shape::kMatinv:
        return batches.invert_small();
      case Shape::kGeqrf:
        return batches.orthogonalize();
      default:
        return batches.least_squares();
    }
  });
}

}  // namespace heddle::software
