#pragma once

// What the programs share that check cuBLAS and cuRAND against plain calculations on the host: arrays on both sides,
// matrices of the host's, comparisons, digests.

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <vector>

namespace {

uint64_t digest = 14695981039346656037ull;  // FNV-1a
void take(const void* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) digest = (digest ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211ull;
}

// What is wrong is told, up to a number of times, and the rest is looked at all the same.
int failures = 0;
void complain(const char* what, int line, double got, double expected) {
  std::printf("FAIL: %s (line %d): %g, expected %g\n", what, line, got, expected);
  if (++failures == 20) std::exit(1);
}
void expect(long got, long expected, const char* what, int line) {
  if (got != expected) complain(what, line, static_cast<double>(got), static_cast<double>(expected));
}
#define OK(call) expect(static_cast<long>(call), 0, #call, __LINE__)
#define IS(call, expected) expect(static_cast<long>(call), static_cast<long>(expected), #call, __LINE__)

void near(double got, double expected, double tolerance, int line) {
  if (!(std::fabs(got - expected) <= tolerance * (1 + std::fabs(expected)))) complain("a number", line, got, expected);
}
#define NEAR(got, expected, tolerance) near(static_cast<double>(got), expected, tolerance, __LINE__)

// Numbers in [-1, 1], the same in every run.
double number() {
  static uint64_t state = 1;
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return static_cast<double>(static_cast<int64_t>(state >> 11)) * 0x1p-52 - 1;
}

template <class T>
T make() {
  return static_cast<T>(number());
}
template <>
cuComplex make() {
  return {static_cast<float>(number()), static_cast<float>(number())};
}
template <>
cuDoubleComplex make() {
  return {number(), number()};
}
template <>
int8_t make() {
  return static_cast<int8_t>(number() * 100);
}

// An array on both sides.
template <class T>
struct Array {
  explicit Array(size_t count) : host(count) {
    for (T& each : host) each = make<T>();
    OK(cudaMalloc(&device, std::max<size_t>(count, 1) * sizeof(T)));
    send();
  }
  ~Array() { cudaFree(device); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  void send() { OK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice)); }
  std::vector<T> fetch() const {
    std::vector<T> back(host.size());
    OK(cudaMemcpy(back.data(), device, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
    take(back.data(), back.size() * sizeof(T));
    return back;
  }
  std::vector<T> host;
  T* device = nullptr;
};

using Complex = std::complex<double>;
Complex wide(float x) {
  return x;
}
Complex wide(double x) {
  return x;
}
Complex wide(cuComplex x) {
  return {x.x, x.y};
}
Complex wide(cuDoubleComplex x) {
  return {x.x, x.y};
}
Complex wide(__half x) {
  return __half2float(x);
}
Complex wide(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
Complex wide(int8_t x) {
  return x;
}
Complex wide(int32_t x) {
  return x;
}

// A dense matrix of the host's, by columns.
struct Dense {
  int rows = 0, columns = 0;
  std::vector<Complex> values;
  Dense(int r, int c) : rows(r), columns(c), values(static_cast<size_t>(r) * c) {}
  Complex& at(int i, int j) { return values[i + static_cast<size_t>(j) * rows]; }
  Complex at(int i, int j) const { return values[i + static_cast<size_t>(j) * rows]; }
};
template <class T>
Dense dense(const std::vector<T>& from, int rows, int columns, int ld, size_t offset = 0) {
  Dense to(rows, columns);
  for (int j = 0; j < columns; ++j)
    for (int i = 0; i < rows; ++i) to.at(i, j) = wide(from[offset + i + static_cast<size_t>(j) * ld]);
  return to;
}
Dense op(const Dense& of, cublasOperation_t how) {
  if (how == CUBLAS_OP_N) return of;
  Dense to(of.columns, of.rows);
  for (int j = 0; j < to.columns; ++j)
    for (int i = 0; i < to.rows; ++i) to.at(i, j) = how == CUBLAS_OP_C ? std::conj(of.at(j, i)) : of.at(j, i);
  return to;
}
Dense operator*(const Dense& a, const Dense& b) {
  Dense to(a.rows, b.columns);
  for (int j = 0; j < to.columns; ++j)
    for (int l = 0; l < a.columns; ++l)
      for (int i = 0; i < to.rows; ++i) to.at(i, j) += a.at(i, l) * b.at(l, j);
  return to;
}
// alpha a + beta b
Dense sum(Complex alpha, const Dense& a, Complex beta, const Dense& b) {
  Dense to(a.rows, a.columns);
  for (size_t i = 0; i < to.values.size(); ++i)
    to.values[i] = alpha * a.values[i] + (beta == 0.0 ? 0.0 : beta * b.values[i]);
  return to;
}
Dense filled(const Dense& half, cublasFillMode_t fill, bool symmetric, bool unit = false) {
  Dense to(half.rows, half.columns);
  for (int j = 0; j < to.columns; ++j) {
    for (int i = 0; i < to.rows; ++i) {
      const bool stored = fill == CUBLAS_FILL_MODE_UPPER ? i <= j : i >= j;
      to.at(i, j) = stored ? half.at(i, j) : symmetric ? half.at(j, i) : 0.0;
      if (unit && i == j) to.at(i, j) = 1;
    }
  }
  return to;
}
// What the library left: `expected` where it may write, what was there before elsewhere.
template <class T>
void compare(
    const std::vector<T>& got, const std::vector<T>& before, const Dense& expected, int ld, double tolerance, int line,
    std::function<bool(int, int)> written = [](int, int) { return true; }) {
  for (size_t at = 0; at < got.size(); ++at) {
    const int i = static_cast<int>(at % ld), j = static_cast<int>(at / ld);
    const bool inside = i < expected.rows && j < expected.columns && written(i, j);
    const Complex want = inside ? expected.at(i, j) : wide(before[at]);
    if (!inside && std::isnan(want.real())) continue;
    near(wide(got[at]).real(), want.real(), inside ? tolerance : 0, line);
    near(wide(got[at]).imag(), want.imag(), inside ? tolerance : 0, line);
  }
}

template <class T>
constexpr double kTolerance = 1e-4;
template <>
constexpr double kTolerance<double> = 1e-11;
template <>
constexpr double kTolerance<cuDoubleComplex> = 1e-11;
template <class T>
constexpr bool kComplex = std::is_same_v<T, cuComplex> || std::is_same_v<T, cuDoubleComplex>;

constexpr cublasOperation_t kOps[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
constexpr cublasFillMode_t kFills[] = {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER};
constexpr cublasSideMode_t kSides[] = {CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT};
constexpr cublasDiagType_t kDiags[] = {CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT};

// A vector of the library's as a column; a step backwards begins at its end.
template <class T>
Dense column(const std::vector<T>& from, int n, int step) {
  Dense to(n, 1);
  for (int i = 0; i < n; ++i) to.at(i, 0) = wide(from[step > 0 ? i * step : (i - n + 1) * step]);
  return to;
}
template <class T>
void compare_vector(const Array<T>& got, const Dense& expected, int step, int line) {
  const Dense left = column(got.fetch(), expected.rows, step);
  for (int i = 0; i < expected.rows; ++i) {
    near(left.at(i, 0).real(), expected.at(i, 0).real(), kTolerance<T>, line);
    near(left.at(i, 0).imag(), expected.at(i, 0).imag(), kTolerance<T>, line);
  }
}

void group(const char* name, void (*run)()) {
  digest = 14695981039346656037ull;
  run();
  OK(cudaDeviceSynchronize());
  std::printf("%-22s %016llx\n", name, static_cast<unsigned long long>(digest));
}

}  // namespace

// The functions of the types, under one name.
// clang-format off
#define OVERLOAD(T, function, name) \
  template <class... A> cublasStatus_t name(const T*, A... a) { return function(a...); }
#define REAL(base, name) OVERLOAD(float, cublasS##base, name) OVERLOAD(double, cublasD##base, name)
#define COMPLEX(base, name) OVERLOAD(cuComplex, cublasC##base, name) OVERLOAD(cuDoubleComplex, cublasZ##base, name)
#define ALL(base, name) REAL(base, name) COMPLEX(base, name)
// clang-format on
