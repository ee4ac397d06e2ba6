// cuBLAS's functions of level 1 whose types are arguments, each against a plain calculation on the host. Prints a line
// for each group, its name and a digest of what the library answered; then PASS.

#include <cstring>

#include "library_check.h"

namespace {

cublasHandle_t handle;

template <class T>
constexpr cudaDataType kType = CUDA_R_32F;
template <>
constexpr cudaDataType kType<double> = CUDA_R_64F;
template <>
constexpr cudaDataType kType<__half> = CUDA_R_16F;
template <>
constexpr cudaDataType kType<__nv_bfloat16> = CUDA_R_16BF;
template <>
constexpr cudaDataType kType<cuComplex> = CUDA_C_32F;
template <>
constexpr cudaDataType kType<cuDoubleComplex> = CUDA_C_64F;

// How far a stored number may be from what was calculated.
template <class T>
constexpr double kStored = kTolerance<T>;
template <>
constexpr double kStored<__half> = 2e-2;
template <>
constexpr double kStored<__nv_bfloat16> = 1e-1;

// What is calculated in, and the type of sizes.
template <class T>
struct Calculated {
  using Type = T;
  using Real = T;
};
template <>
struct Calculated<__half> {
  using Type = float;
  using Real = __half;
};
template <>
struct Calculated<__nv_bfloat16> {
  using Type = float;
  using Real = __nv_bfloat16;
};
template <>
struct Calculated<cuComplex> {
  using Type = cuComplex;
  using Real = float;
};
template <>
struct Calculated<cuDoubleComplex> {
  using Type = cuDoubleComplex;
  using Real = double;
};

void same(Complex got, Complex expected, double tolerance, int line) {
  near(got.real(), expected.real(), tolerance, line);
  near(got.imag(), expected.imag(), tolerance, line);
}

template <class T>
void is(const Array<T>& got, const Dense& expected, int step, int line) {
  const Dense left = column(got.fetch(), expected.rows, step);
  for (int i = 0; i < expected.rows; ++i) same(left.at(i, 0), expected.at(i, 0), kStored<T>, line);
}

template <class T>
void vectors() {
  using C = typename Calculated<T>::Type;
  constexpr cudaDataType type = kType<T>, in = kType<C>;
  const int n = 33;
  Array<T> x(2 * n), y(3 * n);
  const Dense u = column(x.host, n, 2), v = column(y.host, n, -3);
  const C alpha = make<C>();
  OK(cublasAxpyEx(handle, n, &alpha, in, x.device, type, 2, y.device, type, -3, in));
  is(y, sum(wide(alpha), u, 1, v), -3, __LINE__);
  y.send();
  OK(cublasAxpyEx_64(handle, n, &alpha, in, x.device, type, 2, y.device, type, -3, in));
  is(y, sum(wide(alpha), u, 1, v), -3, __LINE__);
  y.send();
  OK(cublasScalEx(handle, n, &alpha, in, x.device, type, 2, in));
  is(x, sum(wide(alpha), u, 0, u), 2, __LINE__);
  x.send();
  OK(cublasScalEx_64(handle, n, &alpha, in, x.device, type, 2, in));
  is(x, sum(wide(alpha), u, 0, u), 2, __LINE__);
  x.send();
  T answer;
  OK(cublasDotEx(handle, n, x.device, type, 2, y.device, type, -3, &answer, type, in));
  same(wide(answer), (op(u, CUBLAS_OP_T) * v).at(0, 0), kStored<T>, __LINE__);
  OK(cublasDotEx_64(handle, n, x.device, type, 2, y.device, type, -3, &answer, type, in));
  same(wide(answer), (op(u, CUBLAS_OP_T) * v).at(0, 0), kStored<T>, __LINE__);
  OK(cublasDotcEx(handle, n, x.device, type, 2, y.device, type, -3, &answer, type, in));
  same(wide(answer), (op(u, CUBLAS_OP_C) * v).at(0, 0), kStored<T>, __LINE__);
  OK(cublasDotcEx_64(handle, n, x.device, type, 2, y.device, type, -3, &answer, type, in));
  same(wide(answer), (op(u, CUBLAS_OP_C) * v).at(0, 0), kStored<T>, __LINE__);
  typename Calculated<T>::Real length;
  double squares = 0;
  for (const Complex each : u.values) squares += std::norm(each);
  OK(cublasNrm2Ex(handle, n, x.device, type, 2, &length, kType<typename Calculated<T>::Real>,
                  kType<typename Calculated<C>::Real>));
  same(wide(length), std::sqrt(squares), kStored<T>, __LINE__);
  OK(cublasNrm2Ex_64(handle, n, x.device, type, 2, &length, kType<typename Calculated<T>::Real>,
                     kType<typename Calculated<C>::Real>));
  same(wide(length), std::sqrt(squares), kStored<T>, __LINE__);
}

// The functions that only read and move.
template <class T>
void moves() {
  constexpr cudaDataType type = kType<T>;
  const int n = 33;
  Array<T> x(2 * n), y(3 * n);
  const Dense u = column(x.host, n, 2), v = column(y.host, n, -3);
  OK(cublasSwapEx(handle, n, x.device, type, 2, y.device, type, -3));
  is(x, v, 2, __LINE__);
  is(y, u, -3, __LINE__);
  OK(cublasSwapEx_64(handle, n, x.device, type, 2, y.device, type, -3));
  is(x, u, 2, __LINE__);
  OK(cublasCopyEx(handle, n, x.device, type, 2, y.device, type, -3));
  is(y, u, -3, __LINE__);
  OK(cublasCopyEx_64(handle, n, x.device, type, 2, y.device, type, 3));
  is(y, u, 3, __LINE__);
  int largest = 0, smallest = 0, index = -1;
  int64_t index_64 = -1;
  const auto size = [&](int i) { return std::fabs(u.at(i, 0).real()) + std::fabs(u.at(i, 0).imag()); };
  for (int i = 0; i < n; ++i) {
    if (size(i) > size(largest)) largest = i;
    if (size(i) < size(smallest)) smallest = i;
  }
  OK(cublasIamaxEx(handle, n, x.device, type, 2, &index));
  IS(index, largest + 1);
  OK(cublasIamaxEx_64(handle, n, x.device, type, 2, &index_64));
  IS(index_64, largest + 1);
  OK(cublasIaminEx(handle, n, x.device, type, 2, &index));
  IS(index, smallest + 1);
  OK(cublasIaminEx_64(handle, n, x.device, type, 2, &index_64));
  IS(index_64, smallest + 1);
}

template <class T>
void rotations() {
  constexpr cudaDataType type = kType<T>;
  const int n = 33;
  Array<T> x(2 * n), y(3 * n);
  const Dense u = column(x.host, n, 2), v = column(y.host, n, 3);
  const T c = T(0.6), s = T(-0.8), h[5] = {T(-1), T(0.5), T(-0.25), T(2), T(0.75)};
  OK(cublasRotEx(handle, n, x.device, type, 2, y.device, type, 3, &c, &s, type, type));
  is(x, sum(0.6, u, -0.8, v), 2, __LINE__);
  is(y, sum(0.6, v, 0.8, u), 3, __LINE__);
  x.send(), y.send();
  OK(cublasRotEx_64(handle, n, x.device, type, 2, y.device, type, 3, &c, &s, type, type));
  is(x, sum(0.6, u, -0.8, v), 2, __LINE__);
  x.send(), y.send();
  OK(cublasRotmEx(handle, n, x.device, type, 2, y.device, type, 3, h, type, type));
  is(x, sum(0.5, u, 2, v), 2, __LINE__);
  is(y, sum(-0.25, u, 0.75, v), 3, __LINE__);
  x.send(), y.send();
  OK(cublasRotmEx_64(handle, n, x.device, type, 2, y.device, type, 3, h, type, type));
  is(x, sum(0.5, u, 2, v), 2, __LINE__);
  T a = T(3), b = T(4), cosine, sine;
  OK(cublasRotgEx(handle, &a, &b, type, &cosine, &sine, type, type));
  NEAR(std::fabs(a), 5, kTolerance<T>);
  NEAR(cosine * 3 + sine * 4, a, kTolerance<T>);
  T d1 = T(2), d2 = T(1), x1 = T(3), parameters[5] = {};
  const T y1 = T(1);
  OK(cublasRotmgEx(handle, &d1, type, &d2, type, &x1, type, &y1, type, parameters, type, type));
  NEAR(parameters[0], 0, 0);
  NEAR(parameters[2] * 3 + 1, 0, kTolerance<T>);
  double squares = 0;
  T answer;
  for (int i = 0; i < n; ++i) squares += std::fabs(u.at(i, 0).real());
  x.send();
  OK(cublasAsumEx(handle, n, x.device, type, 2, &answer, type, type));
  NEAR(answer, squares, kTolerance<T>);
  OK(cublasAsumEx_64(handle, n, x.device, type, 2, &answer, type, type));
  NEAR(answer, squares, kTolerance<T>);
}

void refusals() {
  Array<float> x(16);
  const float one = 1;
  float answer;
  IS(cublasAxpyEx(handle, 4, nullptr, CUDA_R_32F, x.device, CUDA_R_32F, 1, x.device, CUDA_R_32F, 1, CUDA_R_32F),
     CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasDotEx(handle, 4, x.device, CUDA_R_32F, 1, x.device, CUDA_R_64F, 1, &answer, CUDA_R_32F, CUDA_R_32F),
     CUBLAS_STATUS_NOT_SUPPORTED);
  IS(cublasScalEx(handle, 4, &one, CUDA_R_32F, x.device, CUDA_R_8I, 1, CUDA_R_32F), CUBLAS_STATUS_NOT_SUPPORTED);
}

}  // namespace

int main() {
  OK(cublasCreate(&handle));
  group("typed S D", [] { vectors<float>(), vectors<double>(); });
  group("typed C Z", [] { vectors<cuComplex>(), vectors<cuDoubleComplex>(); });
  group("typed halves", [] { vectors<__half>(), vectors<__nv_bfloat16>(); });
  group("moves", [] { moves<float>(), moves<double>(), moves<cuComplex>(), moves<cuDoubleComplex>(); });
  group("rotations", [] { rotations<float>(), rotations<double>(); });
  // NVIDIA's library takes some of it.
  if (std::getenv("HEDDLE_JOB")) group("refusals", refusals);
  OK(cublasDestroy(handle));
  if (failures == 0) std::printf("PASS\n");
  return failures == 0 ? 0 : 1;
}
