#include "device/software/libraries/products.h"

#include <complex>
#include <cstring>
#include <vector>

#include "device/software/libraries/element_types.h"
#include "library/number_format.h"

namespace heddle::software {
namespace {

using library::cublas::DataType;

bool is_plain(const ProductCall& call) {
  const DataType type = call.a.type;
  const bool known =
      type == DataType::kF32 || type == DataType::kF64 || type == DataType::kC32 || type == DataType::kC64;
  return known && call.b.type == type && call.c.type == type;
}

// op == 'N' ? as it stands : the other way round.
uint64_t at(char op, int32_t ld, uint64_t row, uint64_t column) {
  return op == 'N' ? row + column * static_cast<uint64_t>(ld) : column + row * static_cast<uint64_t>(ld);
}

float as_float(const StoredMatrix& from, uint64_t index) {
  switch (from.type) {
    case DataType::kF16:
      return library::float_of_half(static_cast<const uint16_t*>(from.data)[index]);
    case DataType::kBf16:
      return library::float_of_bfloat(static_cast<const uint16_t*>(from.data)[index]);
    case DataType::kI8:
      return static_cast<const int8_t*>(from.data)[index];
    default:
      return static_cast<const float*>(from.data)[index];
  }
}

void store(const StoredMatrix& to, uint64_t index, float value) {
  switch (to.type) {
    case DataType::kF16:
      static_cast<uint16_t*>(to.data)[index] = library::half_of(value);
      return;
    case DataType::kBf16:
      static_cast<uint16_t*>(to.data)[index] = library::bfloat_of(value);
      return;
    default:
      static_cast<float*>(to.data)[index] = value;
  }
}

// op(matrix) by columns, without gaps.
template <class Number, class Get>
std::vector<Number> dense(char op, const StoredMatrix& from, int32_t rows, int32_t columns, Get&& get) {
  std::vector<Number> numbers(static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns));
  uint64_t next = 0;
  for (int32_t column = 0; column < columns; ++column) {
    for (int32_t row = 0; row < rows; ++row)
      numbers[next++] = get(at(op, from.ld, static_cast<uint64_t>(row), static_cast<uint64_t>(column)));
  }
  return numbers;
}

using Gemm = void (*)(const char*, const char*, const int32_t*, const int32_t*, const int32_t*, const void*,
                      const void*, const int32_t*, const void*, const int32_t*, const void*, void*, const int32_t*);

using Gemv = void (*)(const char*, const int32_t*, const int32_t*, const void*, const void*, const int32_t*,
                      const void*, const int32_t*, const void*, void*, const int32_t*);

void plain_multiply(const ProductCall& call, const Openblas& blas) {
  const auto gemm = reinterpret_cast<Gemm>(blas.function(symbol(call.c.type, "gemm_").c_str()));
  gemm(&call.a_op, &call.b_op, &call.m, &call.n, &call.k, call.alpha, call.a.data, &call.a.ld, call.b.data, &call.b.ld,
       call.beta, call.c.data, &call.c.ld);
}

float scalar(const void* value, DataType type) {
  return as_float({type, const_cast<void*>(value), 1}, 0);
}

// In single precision: half precision and bfloat16 are read exactly, and rounded once where they are stored.
void mixed_multiply(const ProductCall& call, const Openblas& blas) {
  const auto floats = [](char op, const StoredMatrix& from, int32_t rows, int32_t columns) {
    return dense<float>(op, from, rows, columns, [&](uint64_t index) { return as_float(from, index); });
  };
  std::vector<float> a = floats(call.a_op, call.a, call.m, call.k), b = floats(call.b_op, call.b, call.k, call.n);
  std::vector<float> product(static_cast<uint64_t>(call.m) * static_cast<uint64_t>(call.n));
  const float one = 1, zero = 0;
  const int32_t a_ld = std::max(call.m, 1), b_ld = std::max(call.k, 1);
  plain_multiply({'N',
                  'N',
                  call.m,
                  call.n,
                  call.k,
                  &one,
                  &zero,
                  {DataType::kF32, a.data(), a_ld},
                  {DataType::kF32, b.data(), b_ld},
                  {DataType::kF32, product.data(), a_ld},
                  DataType::kF32},
                 blas);
  const float alpha = scalar(call.alpha, call.compute), beta = scalar(call.beta, call.compute);
  uint64_t next = 0;
  for (int32_t column = 0; column < call.n; ++column) {
    for (int32_t row = 0; row < call.m; ++row) {
      const uint64_t index = at('N', call.c.ld, static_cast<uint64_t>(row), static_cast<uint64_t>(column));
      const float before = beta == 0 ? 0 : beta * as_float(call.c, index);
      store(call.c, index, alpha * product[next++] + before);
    }
  }
}

// Exact, as far as 32 bits go.
void integer_multiply(const ProductCall& call) {
  const auto numbers = [](char op, const StoredMatrix& from, int32_t rows, int32_t columns) {
    const auto* const data = static_cast<const int8_t*>(from.data);
    return dense<int8_t>(op, from, rows, columns, [&](uint64_t index) { return data[index]; });
  };
  const std::vector<int8_t> a = numbers(call.a_op, call.a, call.m, call.k),
                            b = numbers(call.b_op, call.b, call.k, call.n);
  uint32_t alpha, beta;
  std::memcpy(&alpha, call.alpha, sizeof alpha);
  std::memcpy(&beta, call.beta, sizeof beta);
  const auto m = static_cast<uint64_t>(call.m), k = static_cast<uint64_t>(call.k);
  std::vector<uint32_t> sums(m);  // without a sign, so that they may wrap
  for (uint64_t column = 0; column < static_cast<uint64_t>(call.n); ++column) {
    std::fill(sums.begin(), sums.end(), 0);
    for (uint64_t i = 0; i < k; ++i) {
      const int8_t factor = b[column * k + i];
      for (uint64_t row = 0; row < m; ++row) sums[row] += static_cast<uint32_t>(factor * a[i * m + row]);
    }
    uint32_t* const c = static_cast<uint32_t*>(call.c.data) + column * static_cast<uint64_t>(call.c.ld);
    for (uint64_t row = 0; row < m; ++row) c[row] = alpha * sums[row] + (beta == 0 ? 0 : beta * c[row]);
  }
}

template <class Number>
Number scalar_of(const void* value) {
  Number number;
  std::memcpy(&number, value, sizeof number);
  return number;
}

template <class Number>
Number conjugated(char op, Number number) {
  if constexpr (!std::is_floating_point_v<Number>) {
    if (op == 'C') return std::conj(number);
  }
  return number;
}

}  // namespace

void multiply(const ProductCall& call, const Openblas& blas) {
  if (call.m == 0 || call.n == 0) return;
  if (is_plain(call)) return plain_multiply(call, blas);
  if (call.compute == DataType::kI32) return integer_multiply(call);
  mixed_multiply(call, blas);
}

// The types that BLAS knows by its gemv; others as the product of two matrices of which one is a row, so that the
// vectors' steps are its leading dimensions.
void multiply_vector(const VectorProductCall& call, const Openblas& blas) {
  if (call.m == 0 || call.n == 0) return;
  if (call.a.type == call.compute) {
    const auto gemv = reinterpret_cast<Gemv>(blas.function(symbol(call.compute, "gemv_").c_str()));
    return gemv(&call.op, &call.m, &call.n, call.alpha, call.a.data, &call.a.ld, call.x.data, &call.x.ld, call.beta,
                call.y.data, &call.y.ld);
  }
  const bool plain = call.op == 'N';
  const int32_t taken = plain ? call.n : call.m, made = plain ? call.m : call.n;
  std::vector<float> x(static_cast<size_t>(taken)), y(static_cast<size_t>(made));
  const auto first = [](int32_t count, int32_t step) { return step < 0 ? int64_t{1 - count} * step : 0; };
  const auto index = [&](int32_t i, int32_t count, int32_t step) {
    return static_cast<uint64_t>(first(count, step) + int64_t{i} * step);
  };
  const auto beta = scalar_of<float>(call.beta);
  for (int32_t i = 0; i < taken; ++i) x[static_cast<size_t>(i)] = as_float(call.x, index(i, taken, call.x.ld));
  for (int32_t i = 0; i < made && beta != 0; ++i)
    y[static_cast<size_t>(i)] = as_float(call.y, index(i, made, call.y.ld));
  const ProductCall row{'N',
                        plain ? 'T' : 'N',
                        1,
                        made,
                        taken,
                        call.alpha,
                        call.beta,
                        {DataType::kF32, x.data(), 1},
                        call.a,
                        {DataType::kF32, y.data(), 1},
                        DataType::kF32};
  mixed_multiply(row, blas);
  for (int32_t i = 0; i < made; ++i) store(call.y, index(i, made, call.y.ld), y[static_cast<size_t>(i)]);
}

void symmetric_multiply(const ProductCall& call, bool upper, bool hermitian, const Openblas& blas) {
  with_type(call.c.type, [&](auto zero) {
    using Number = decltype(zero);
    const auto n = static_cast<uint64_t>(call.n);
    if (n == 0) return;
    std::vector<Number> product(n * n);
    ProductCall whole = call;
    whole.c = {call.c.type, product.data(), call.n};
    whole.beta = &zero;
    plain_multiply(whole, blas);
    const auto beta = scalar_of<Number>(call.beta);
    auto* const c = static_cast<Number*>(call.c.data);
    for (uint64_t column = 0; column < n; ++column) {
      for (uint64_t row = upper ? 0 : column; row < (upper ? column + 1 : n); ++row) {
        Number& to = c[at('N', call.c.ld, row, column)];
        to = product[row + column * n] + (beta == zero ? zero : beta * to);
        if (hermitian && row == column) to = std::real(to);
      }
    }
  });
}

void add_matrices(const ProductCall& call) {
  with_type(call.c.type, [&](auto zero) {
    using Number = decltype(zero);
    const auto alpha = scalar_of<Number>(call.alpha), beta = scalar_of<Number>(call.beta);
    const auto term = [&](Number factor, char op, const StoredMatrix& from, uint64_t row, uint64_t column) {
      if (factor == zero) return zero;  // not read
      return factor * conjugated(op, static_cast<const Number*>(from.data)[at(op, from.ld, row, column)]);
    };
    for (uint64_t column = 0; column < static_cast<uint64_t>(call.n); ++column) {
      for (uint64_t row = 0; row < static_cast<uint64_t>(call.m); ++row)
        static_cast<Number*>(call.c.data)[at('N', call.c.ld, row, column)] =
            term(alpha, call.a_op, call.a, row, column) + term(beta, call.b_op, call.b, row, column);
    }
  });
}

void scale_matrix(const ScaleCall& call) {
  with_type(call.c.type, [&](auto zero) {
    using Number = decltype(zero);
    const int64_t count = call.left ? call.m : call.n;
    const int64_t first = call.step < 0 ? (1 - count) * call.step : 0;
    for (int32_t column = 0; column < call.n; ++column) {
      for (int32_t row = 0; row < call.m; ++row) {
        const int64_t index = first + int64_t{call.left ? row : column} * call.step;
        const auto r = static_cast<uint64_t>(row), c = static_cast<uint64_t>(column);
        static_cast<Number*>(call.c.data)[at('N', call.c.ld, r, c)] =
            static_cast<const Number*>(call.a.data)[at('N', call.a.ld, r, c)] *
            static_cast<const Number*>(call.x)[index];
      }
    }
  });
}

}  // namespace heddle::software
