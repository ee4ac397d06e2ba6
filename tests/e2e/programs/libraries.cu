// cuBLAS and cuRAND, many routines of them, each against a plain calculation on the host. Prints a line for each group:
// its name and a digest of what the library answered, so that two runs on one GPU can be compared; then PASS.
// With the argument `bad` it gives cuBLAS an address that is not its own, and tells what comes of it.

#include <curand.h>

#include <cstring>

#include "library_check.h"

namespace {

// clang-format off
ALL(gemm, gemm) ALL(symm, symm) ALL(syrk, syrk) ALL(syr2k, syr2k) ALL(syrkx, syrkx) ALL(trmm, trmm) ALL(trsm, trsm)
ALL(geam, geam) ALL(dgmm, dgmm) ALL(gemmStridedBatched, gemm_strided) ALL(gemmBatched, gemm_batched)
REAL(gemv, gemv) REAL(gbmv, gbmv) REAL(ger, ger) REAL(symv, symv) REAL(sbmv, sbmv) REAL(spmv, spmv) REAL(syr, syr)
REAL(syr2, syr2) REAL(spr, spr) REAL(spr2, spr2) REAL(trmv, trmv) REAL(trsv, trsv) REAL(tbmv, tbmv) REAL(tbsv, tbsv)
REAL(tpmv, tpmv) REAL(tpsv, tpsv) REAL(axpy, axpy) REAL(dot, dot) REAL(nrm2, nrm2) REAL(asum, asum) REAL(scal, scal)
REAL(copy, copy) REAL(swap, swap) REAL(rot, rot) REAL(rotm, rotm) REAL(rotg, rotg) REAL(rotmg, rotmg)
OVERLOAD(float, cublasIsamax, iamax) OVERLOAD(double, cublasIdamax, iamax)
OVERLOAD(float, cublasIsamin, iamin) OVERLOAD(double, cublasIdamin, iamin)

cublasHandle_t handle;
// clang-format on

template <class T>
void products() {
  const T* const tag = nullptr;
  const int m = 37, n = 29, k = 43;
  for (const cublasOperation_t ta : kOps) {
    for (const cublasOperation_t tb : kOps) {
      const int lda = (ta == CUBLAS_OP_N ? m : k) + 3, ldb = (tb == CUBLAS_OP_N ? k : n) + 1, ldc = m + 2;
      Array<T> a(lda * (ta == CUBLAS_OP_N ? k : m)), b(ldb * (tb == CUBLAS_OP_N ? n : k)), c(ldc * n);
      const T alpha = make<T>(), beta = make<T>();
      OK(gemm(tag, handle, ta, tb, m, n, k, &alpha, a.device, lda, b.device, ldb, &beta, c.device, ldc));
      const Dense left = op(dense(a.host, ta == CUBLAS_OP_N ? m : k, ta == CUBLAS_OP_N ? k : m, lda), ta);
      const Dense right = op(dense(b.host, tb == CUBLAS_OP_N ? k : n, tb == CUBLAS_OP_N ? n : k, ldb), tb);
      compare(c.fetch(), c.host, sum(wide(alpha), left * right, wide(beta), dense(c.host, m, n, ldc)), ldc,
              kTolerance<T>, __LINE__);
    }
  }
}

template <class T>
void batches() {
  const T* const tag = nullptr;
  const int m = 9, n = 8, k = 7, count = 5, lda = 10, ldb = 7, ldc = 11;
  const long long stride_a = lda * k + 5, stride_b = 0, stride_c = ldc * n + 1;
  Array<T> a(stride_a * count), b(ldb * n), c(stride_c * count), d(stride_c * count);
  const T alpha = make<T>(), beta = make<T>();
  OK(gemm_strided(tag, handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a.device, lda, stride_a, b.device, ldb,
                  stride_b, &beta, c.device, ldc, stride_c, count));
  std::vector<T*> pointers;
  for (int i = 0; i < count; ++i) pointers.push_back(a.device + i * stride_a);
  for (int i = 0; i < count; ++i) pointers.push_back(b.device);
  for (int i = 0; i < count; ++i) pointers.push_back(d.device + i * stride_c);
  T** arrays;
  OK(cudaMalloc(&arrays, pointers.size() * sizeof(T*)));
  OK(cudaMemcpy(arrays, pointers.data(), pointers.size() * sizeof(T*), cudaMemcpyHostToDevice));
  OK(gemm_batched(tag, handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, arrays, lda, arrays + count, ldb, &beta,
                  arrays + 2 * count, ldc, count));
  const auto strided = c.fetch(), batched = d.fetch();
  for (int i = 0; i < count; ++i) {
    const Dense product = dense(a.host, m, k, lda, i * stride_a) * dense(b.host, k, n, ldb);
    for (const auto* got : {&strided, &batched}) {
      const auto& before = got == &strided ? c.host : d.host;
      const std::vector<T> mine(got->begin() + i * stride_c, got->begin() + (i + 1) * stride_c);
      const std::vector<T> was(before.begin() + i * stride_c, before.begin() + (i + 1) * stride_c);
      compare(mine, was, sum(wide(alpha), product, wide(beta), dense(was, m, n, ldc)), ldc, kTolerance<T>, __LINE__);
    }
  }
  OK(cudaFree(arrays));
}

template <class T>
void symmetric_products() {
  const T* const tag = nullptr;
  const int m = 23, n = 17, k = 11;
  for (const cublasFillMode_t fill : kFills) {
    const auto stored = [fill](int i, int j) { return fill == CUBLAS_FILL_MODE_UPPER ? i <= j : i >= j; };
    for (const cublasSideMode_t side : kSides) {
      const int order = side == CUBLAS_SIDE_LEFT ? m : n, lda = order + 1, ldb = m, ldc = m + 4;
      Array<T> a(lda * order), b(ldb * n), c(ldc * n);
      const T alpha = make<T>(), beta = make<T>();
      OK(symm(tag, handle, side, fill, m, n, &alpha, a.device, lda, b.device, ldb, &beta, c.device, ldc));
      const Dense whole = filled(dense(a.host, order, order, lda), fill, true), other = dense(b.host, m, n, ldb);
      const Dense product = side == CUBLAS_SIDE_LEFT ? whole * other : other * whole;
      compare(c.fetch(), c.host, sum(wide(alpha), product, wide(beta), dense(c.host, m, n, ldc)), ldc, kTolerance<T>,
              __LINE__);
    }
    for (const cublasOperation_t trans : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      const int rows = trans == CUBLAS_OP_N ? n : k, columns = trans == CUBLAS_OP_N ? k : n, ld = rows + 2, ldc = n + 1;
      Array<T> a(ld * columns), b(ld * columns), c(ldc * n), d(ldc * n), e(ldc * n);
      const T alpha = make<T>(), beta = make<T>();
      const Complex al = wide(alpha), be = wide(beta);
      OK(syrk(tag, handle, fill, trans, n, k, &alpha, a.device, ld, &beta, c.device, ldc));
      OK(syr2k(tag, handle, fill, trans, n, k, &alpha, a.device, ld, b.device, ld, &beta, d.device, ldc));
      OK(syrkx(tag, handle, fill, trans, n, k, &alpha, a.device, ld, b.device, ld, &beta, e.device, ldc));
      const Dense left = op(dense(a.host, rows, columns, ld), trans),
                  right = op(dense(b.host, rows, columns, ld), trans);
      compare(c.fetch(), c.host, sum(al, left * op(left, CUBLAS_OP_T), be, dense(c.host, n, n, ldc)), ldc,
              kTolerance<T>, __LINE__, stored);
      const Dense one = left * op(right, CUBLAS_OP_T), both = sum(1, one, 1, right * op(left, CUBLAS_OP_T));
      compare(d.fetch(), d.host, sum(al, both, be, dense(d.host, n, n, ldc)), ldc, kTolerance<T>, __LINE__, stored);
      compare(e.fetch(), e.host, sum(al, one, be, dense(e.host, n, n, ldc)), ldc, kTolerance<T>, __LINE__, stored);
    }
  }
}

template <class T>
void triangular_products() {
  const T* const tag = nullptr;
  const int m = 19, n = 13;
  for (const cublasSideMode_t side : kSides) {
    for (const cublasFillMode_t fill : kFills) {
      for (const cublasOperation_t trans : kOps) {
        for (const cublasDiagType_t diag : kDiags) {
          const int order = side == CUBLAS_SIDE_LEFT ? m : n, lda = order + 1, ldb = m + 3, ldc = m + 1;
          Array<T> a(lda * order), b(ldb * n), c(ldc * n);
          for (int i = 0; i < order; ++i) {
            for (int j = 0; j < order; ++j) {  // well conditioned, with and without its diagonal
              T& each = a.host[i + j * lda];
              if constexpr (kComplex<T>) each.x /= 20, each.y /= 20, each.x += i == j ? 2 : 0;
              if constexpr (!kComplex<T>) each = each / 20 + (i == j ? 2 : 0);
            }
          }
          a.send();
          const T alpha = make<T>();
          OK(trmm(tag, handle, side, fill, trans, diag, m, n, &alpha, a.device, lda, b.device, ldb, c.device, ldc));
          const Dense triangle =
              op(filled(dense(a.host, order, order, lda), fill, false, diag == CUBLAS_DIAG_UNIT), trans);
          const Dense other = dense(b.host, m, n, ldb);
          const Dense product = side == CUBLAS_SIDE_LEFT ? triangle * other : other * triangle;
          compare(c.fetch(), c.host, sum(wide(alpha), product, 0, product), ldc, kTolerance<T>, __LINE__);
          OK(trsm(tag, handle, side, fill, trans, diag, m, n, &alpha, a.device, lda, b.device, ldb));
          const Dense solved = dense(b.fetch(), m, n, ldb);
          const Dense back = side == CUBLAS_SIDE_LEFT ? triangle * solved : solved * triangle;
          const Dense wanted = sum(wide(alpha), other, 0, other);
          for (size_t i = 0; i < back.values.size(); ++i) {
            NEAR(back.values[i].real(), wanted.values[i].real(), kTolerance<T>);
            NEAR(back.values[i].imag(), wanted.values[i].imag(), kTolerance<T>);
          }
        }
      }
    }
  }
}

template <class T>
void sums_and_scales() {
  const T* const tag = nullptr;
  const int m = 12, n = 15, lda = 16, ldb = 17, ldc = 13;
  Array<T> a(lda * 15), b(ldb * 15), c(ldc * n), x(40);
  const T alpha = make<T>(), beta = make<T>();
  OK(geam(tag, handle, CUBLAS_OP_N, CUBLAS_OP_T, m, n, &alpha, a.device, lda, &beta, b.device, ldb, c.device, ldc));
  compare(c.fetch(), c.host,
          sum(wide(alpha), dense(a.host, m, n, lda), wide(beta), op(dense(b.host, n, m, ldb), CUBLAS_OP_T)), ldc,
          kTolerance<T>, __LINE__);
  for (const cublasSideMode_t side : kSides) {
    OK(dgmm(tag, handle, side, m, n, a.device, lda, x.device, 2, c.device, ldc));
    Dense scaled = dense(a.host, m, n, lda);
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) scaled.at(i, j) *= wide(x.host[2 * (side == CUBLAS_SIDE_LEFT ? i : j)]);
    compare(c.fetch(), c.host, scaled, ldc, kTolerance<T>, __LINE__);
  }
}

template <class T>
void vectors() {
  const T* const tag = nullptr;
  const int n = 101;
  for (const auto& [step_x, step_y] : {std::pair(1, 1), {2, 3}, {-1, 2}}) {
    Array<T> x(n * 3), y(n * 3);
    const Dense u = column(x.host, n, step_x), v = column(y.host, n, step_y);
    const T alpha = make<T>();
    T answer;
    OK(dot(tag, handle, n, x.device, step_x, y.device, step_y, &answer));
    NEAR(answer, (op(u, CUBLAS_OP_T) * v).at(0, 0).real(), kTolerance<T>);
    take(&answer, sizeof answer);
    OK(axpy(tag, handle, n, &alpha, x.device, step_x, y.device, step_y));
    compare_vector(y, sum(wide(alpha), u, 1, v), step_y, __LINE__);
    y.send();
    const T c = T(0.6), s = T(-0.8);
    OK(rot(tag, handle, n, x.device, step_x, y.device, step_y, &c, &s));
    compare_vector(x, sum(wide(c), u, wide(s), v), step_x, __LINE__);
    compare_vector(y, sum(wide(c), v, -wide(s), u), step_y, __LINE__);
    x.send(), y.send();
    const T h[5] = {T(-1), T(0.5), T(-0.25), T(2), T(0.75)};
    OK(rotm(tag, handle, n, x.device, step_x, y.device, step_y, h));
    compare_vector(x, sum(0.5, u, 2, v), step_x, __LINE__);
    compare_vector(y, sum(-0.25, u, 0.75, v), step_y, __LINE__);
    x.send(), y.send();
    OK(swap(tag, handle, n, x.device, step_x, y.device, step_y));
    compare_vector(x, v, step_x, __LINE__);
    OK(copy(tag, handle, n, x.device, step_x, y.device, step_y));
    compare_vector(y, v, step_y, __LINE__);
  }
  Array<T> x(n * 2);
  double squares = 0, magnitudes = 0;
  int largest = 0, smallest = 0;
  for (int i = 0; i < n; ++i) {
    const double value = std::fabs(x.host[2 * i]);
    squares += value * value, magnitudes += value;
    if (value > std::fabs(x.host[2 * largest])) largest = i;
    if (value < std::fabs(x.host[2 * smallest])) smallest = i;
  }
  T answer;
  int index;
  OK(nrm2(tag, handle, n, x.device, 2, &answer));
  NEAR(answer, std::sqrt(squares), kTolerance<T>);
  OK(asum(tag, handle, n, x.device, 2, &answer));
  NEAR(answer, magnitudes, kTolerance<T>);
  // The same functions by their names that take the types as arguments.
  constexpr cudaDataType_t kType = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;
  OK(cublasNrm2Ex(handle, n, x.device, kType, 2, &answer, kType, kType));
  NEAR(answer, std::sqrt(squares), kTolerance<T>);
  OK(cublasAsumEx(handle, n, x.device, kType, 2, &answer, kType, kType));
  NEAR(answer, magnitudes, kTolerance<T>);
  OK(cublasDotEx(handle, n, x.device, kType, 2, x.device, kType, 2, &answer, kType, kType));
  NEAR(answer, squares, kTolerance<T>);
  OK(iamax(tag, handle, n, x.device, 2, &index));
  IS(index, largest + 1);
  OK(iamin(tag, handle, n, x.device, 2, &index));
  IS(index, smallest + 1);
  OK(iamax(tag, handle, 0, x.device, 2, &index));
  IS(index, 0);
  const T factor = T(-1.5);
  OK(cublasScalEx(handle, n, &factor, kType, x.device, kType, 2, kType));
  compare_vector(x, sum(-1.5, column(x.host, n, 2), 0, column(x.host, n, 2)), 2, __LINE__);
  T a = T(3), b = T(4), c, s;
  OK(rotg(tag, handle, &a, &b, &c, &s));
  NEAR(std::fabs(a), 5, kTolerance<T>);
  NEAR(c * 3 + s * 4, a, kTolerance<T>);
  NEAR(-s * 3 + c * 4, 0, kTolerance<T>);
  T d1 = T(2), d2 = T(1), x1 = T(3), h[5] = {T(9), T(9), T(9), T(9), T(9)};
  const T y1 = T(1);
  OK(rotmg(tag, handle, &d1, &d2, &x1, &y1, h));
  NEAR(h[0], 0, 0);  // the diagonal is one
  NEAR(h[2] * 3 + 1, 0, kTolerance<T>);
}

template <class T>
void matrices_and_vectors() {
  const T* const tag = nullptr;
  const int m = 31, n = 22, below = 3, above = 2, lda = 35;
  const T alpha = T(0.75), beta = T(-0.5);
  for (const cublasOperation_t trans : kOps) {
    const int nx = trans == CUBLAS_OP_N ? n : m, ny = trans == CUBLAS_OP_N ? m : n;
    Array<T> a(lda * n), x(2 * nx), y(3 * ny);
    OK(gemv(tag, handle, trans, m, n, &alpha, a.device, lda, x.device, 2, &beta, y.device, -3));
    compare_vector(y,
                   sum(0.75, op(dense(a.host, m, n, lda), trans) * column(x.host, nx, 2), -0.5, column(y.host, ny, -3)),
                   -3, __LINE__);
    y.send();
    OK(gbmv(tag, handle, trans, m, n, below, above, &alpha, a.device, lda, x.device, 1, &beta, y.device, 2));
    Dense band(m, n);
    for (int j = 0; j < n; ++j)
      for (int i = std::max(0, j - above); i < std::min(m, j + below + 1); ++i)
        band.at(i, j) = wide(a.host[above + i - j + j * lda]);
    compare_vector(y, sum(0.75, op(band, trans) * column(x.host, nx, 1), -0.5, column(y.host, ny, 2)), 2, __LINE__);
  }
  {
    Array<T> a(lda * n), x(m), y(2 * n);
    OK(ger(tag, handle, m, n, &alpha, x.device, 1, y.device, 2, a.device, lda));
    const Dense outer = column(x.host, m, 1) * op(column(y.host, n, 2), CUBLAS_OP_T);
    compare(a.fetch(), a.host, sum(0.75, outer, 1, dense(a.host, m, n, lda)), lda, kTolerance<T>, __LINE__);
  }
  for (const cublasFillMode_t fill : kFills) {
    const bool upper = fill == CUBLAS_FILL_MODE_UPPER;
    const auto stored = [upper](int i, int j) { return upper ? i <= j : i >= j; };
    Array<T> a(lda * n), packed(n * (n + 1) / 2), x(2 * n), y(n);
    for (int i = 0; i < n; ++i) a.host[i + i * lda] += T(4);  // triangles that can be solved
    a.send();
    const Dense u = column(x.host, n, 2), v = column(y.host, n, 1), half = dense(a.host, n, n, lda);
    const auto multiplied = [&](const Dense& whole) { return sum(0.75, whole * u, -0.5, v); };
    OK(symv(tag, handle, fill, n, &alpha, a.device, lda, x.device, 2, &beta, y.device, 1));
    compare_vector(y, multiplied(filled(half, fill, true)), 1, __LINE__);
    y.send();
    const int band = 4;
    Dense banded(n, n), unpacked(n, n);
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < n; ++i) {
        if (!stored(i, j)) continue;
        if (std::abs(i - j) <= band) banded.at(i, j) = wide(a.host[(upper ? band + i - j : i - j) + j * lda]);
        const int at = upper ? i + j * (j + 1) / 2 : i + (2 * n - j - 1) * j / 2;
        if (i == j) packed.host[at] += T(4);
        unpacked.at(i, j) = wide(packed.host[at]);
      }
    }
    packed.send();
    OK(sbmv(tag, handle, fill, n, band, &alpha, a.device, lda, x.device, 2, &beta, y.device, 1));
    compare_vector(y, multiplied(filled(banded, fill, true)), 1, __LINE__);
    y.send();
    OK(spmv(tag, handle, fill, n, &alpha, packed.device, x.device, 2, &beta, y.device, 1));
    compare_vector(y, multiplied(filled(unpacked, fill, true)), 1, __LINE__);
    y.send();
    const Dense uu = u * op(u, CUBLAS_OP_T), uv = sum(1, u * op(v, CUBLAS_OP_T), 1, v * op(u, CUBLAS_OP_T));
    OK(syr(tag, handle, fill, n, &alpha, x.device, 2, a.device, lda));
    compare(a.fetch(), a.host, sum(0.75, uu, 1, half), lda, kTolerance<T>, __LINE__, stored);
    a.send();
    OK(syr2(tag, handle, fill, n, &alpha, x.device, 2, y.device, 1, a.device, lda));
    compare(a.fetch(), a.host, sum(0.75, uv, 1, half), lda, kTolerance<T>, __LINE__, stored);
    a.send();
    const auto compare_packed = [&](const Dense& expected, int line) {
      const auto got = packed.fetch();
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i)
          if (stored(i, j))
            near(got[upper ? i + j * (j + 1) / 2 : i + (2 * n - j - 1) * j / 2], expected.at(i, j).real(),
                 kTolerance<T>, line);
      packed.send();
    };
    OK(spr(tag, handle, fill, n, &alpha, x.device, 2, packed.device));
    compare_packed(sum(0.75, uu, 1, unpacked), __LINE__);
    OK(spr2(tag, handle, fill, n, &alpha, x.device, 2, y.device, 1, packed.device));
    compare_packed(sum(0.75, uv, 1, unpacked), __LINE__);
    for (const cublasOperation_t trans : kOps) {
      const Dense whole = op(filled(half, fill, false), trans), thin = op(filled(banded, fill, false), trans);
      const Dense tight = op(filled(unpacked, fill, false), trans);
      const cublasDiagType_t diag = CUBLAS_DIAG_NON_UNIT;
      // There and back again.
      OK(trmv(tag, handle, fill, trans, diag, n, a.device, lda, x.device, 2));
      compare_vector(x, whole * u, 2, __LINE__);
      OK(trsv(tag, handle, fill, trans, diag, n, a.device, lda, x.device, 2));
      compare_vector(x, u, 2, __LINE__);
      OK(tpmv(tag, handle, fill, trans, diag, n, packed.device, x.device, 2));
      compare_vector(x, tight * u, 2, __LINE__);
      OK(tpsv(tag, handle, fill, trans, diag, n, packed.device, x.device, 2));
      compare_vector(x, u, 2, __LINE__);
      x.send();
      OK(tbmv(tag, handle, fill, trans, diag, n, band, a.device, lda, x.device, 2));
      compare_vector(x, thin * u, 2, __LINE__);
      x.send();
      OK(tbmv(tag, handle, fill, trans, CUBLAS_DIAG_UNIT, n, 0, a.device, lda, x.device, 2));  // the identity
      OK(tbsv(tag, handle, fill, trans, CUBLAS_DIAG_UNIT, n, 0, a.device, lda, x.device, 2));
      compare_vector(x, u, 2, __LINE__);
    }
  }
}

template <class AB, class C, class S>
void mixed(cudaDataType ab, cudaDataType to, cublasComputeType_t compute, double tolerance) {
  const int m = 24, n = 16, k = 32, count = 3;
  const long long sa = m * k, sb = k * n, sc = m * n;
  for (const cublasOperation_t ta : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    const int lda = ta == CUBLAS_OP_N ? m : k;
    Array<AB> a(sa * count), b(sb * count);
    Array<C> c(sc), d(sc * count);
    for (auto* each : {&c, &d}) {
      for (C& value : each->host) value = C(std::is_same_v<C, int32_t> ? 7.0f : 0.25f);
      each->send();
    }
    const S alpha = S(2.0f), beta = S(1.0f);
    OK(cublasGemmEx(handle, ta, CUBLAS_OP_N, m, n, k, &alpha, a.device, ab, lda, b.device, ab, k, &beta, c.device, to,
                    m, compute, CUBLAS_GEMM_DEFAULT));
    OK(cublasGemmStridedBatchedEx(handle, ta, CUBLAS_OP_N, m, n, k, &alpha, a.device, ab, lda, sa, b.device, ab, k, sb,
                                  &beta, d.device, to, m, sc, count, compute, CUBLAS_GEMM_DEFAULT));
    const auto one = c.fetch(), many = d.fetch();
    for (int i = 0; i < count; ++i) {
      const Dense left = op(dense(a.host, ta == CUBLAS_OP_N ? m : k, ta == CUBLAS_OP_N ? k : m, lda, i * sa), ta);
      const Dense expected = sum(2, left * dense(b.host, k, n, k, i * sb), 1, dense(d.host, m, n, m, i * sc));
      const Dense got = dense(many, m, n, m, i * sc), first = dense(one, m, n, m);
      for (size_t j = 0; j < got.values.size(); ++j) {
        NEAR(got.values[j].real(), expected.values[j].real(), tolerance);
        if (i == 0) NEAR(first.values[j].real(), expected.values[j].real(), tolerance);
      }
    }
  }
}

__global__ void set(float* to, float value) {
  *to = value;
}

// Scalars on the device are read when the call's turn comes, and answers are written then.
void pointer_modes() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cublasSetStream(handle, stream));
  OK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  cublasPointerMode_t mode;
  OK(cublasGetPointerMode(handle, &mode));
  IS(mode, CUBLAS_POINTER_MODE_DEVICE);
  const int n = 64;
  Array<float> x(n), y(n), scalars(4);
  Array<int32_t> index(2);
  index.host = {-1, -1};
  index.send();
  set<<<1, 1, 0, stream>>>(scalars.device, 3.0f);
  OK(cublasSaxpy(handle, n, scalars.device, x.device, 1, y.device, 1));
  OK(cublasSdot(handle, n, x.device, 1, x.device, 1, scalars.device + 1));
  OK(cublasIsamax(handle, n, x.device, 1, index.device));
  OK(cudaStreamSynchronize(stream));
  OK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  OK(cublasSetStream(handle, nullptr));
  OK(cudaStreamDestroy(stream));
  compare_vector(y, sum(3, column(x.host, n, 1), 1, column(y.host, n, 1)), 1, __LINE__);
  const Dense u = column(x.host, n, 1);
  NEAR(scalars.fetch()[1], (op(u, CUBLAS_OP_T) * u).at(0, 0).real(), 1e-4);
  const auto found = index.fetch();
  IS(found[1], -1);  // four bytes were written, no more
  const auto largest =
      std::max_element(x.host.begin(), x.host.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  IS(found[0], largest - x.host.begin() + 1);
  int64_t wide_index = -1;
  OK(cublasIsamax_64(handle, n, x.device, 1, &wide_index));
  IS(wide_index, found[0]);
}

void edges() {
  const float one = 1, zero = 0, nan = std::numeric_limits<float>::quiet_NaN();
  Array<float> a(64), b(64), c(64);
  // beta 0: what C held does not matter.
  std::fill(c.host.begin(), c.host.end(), nan);
  c.send();
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a.device, 8, b.device, 8, &zero, c.device, 8));
  compare(c.fetch(), c.host, dense(a.host, 8, 8, 8) * dense(b.host, 8, 8, 8), 8, 1e-4, __LINE__);
  // Nothing to do, nothing to add.
  std::fill(c.host.begin(), c.host.end(), 2.0f);
  c.send();
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 0, 8, 8, &one, a.device, 8, b.device, 8, &zero, c.device, 8));
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 0, 8, &one, a.device, 8, b.device, 8, &zero, c.device, 8));
  const float half = 0.5f;
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 0, &one, a.device, 8, b.device, 8, &half, c.device, 8));
  for (const float each : c.fetch()) NEAR(each, 1, 0);
  // What makes no sense is refused at once.
  IS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, -1, 8, 8, &one, a.device, 8, b.device, 8, &zero, c.device, 8),
     CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a.device, 7, b.device, 8, &zero, c.device, 8),
     CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a.device, 8, b.device, 8, &zero, c.device, 8),
     CUBLAS_STATUS_NOT_INITIALIZED);
  int version = 0;
  OK(cublasGetVersion(handle, &version));
  if (version < 11000) complain("version", __LINE__, version, 13000);
  // Copies of vectors and matrices.
  std::vector<float> host(64, 5.0f), back(64, 0.0f);
  OK(cublasSetVector(16, sizeof(float), host.data(), 2, a.device, 3));
  OK(cublasGetVector(16, sizeof(float), a.device, 3, back.data(), 1));
  for (int i = 0; i < 16; ++i) NEAR(back[i], 5, 0);
  OK(cublasSetMatrix(4, 5, sizeof(float), host.data(), 6, b.device, 8));
  OK(cublasGetMatrix(4, 5, sizeof(float), b.device, 8, back.data(), 4));
  for (int i = 0; i < 20; ++i) NEAR(back[i], 5, 0);
  OK(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
  OK(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
  OK(cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_ALLOWED));
  OK(cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_NOT_ALLOWED));
  void* workspace;
  OK(cudaMalloc(&workspace, 8 << 20));
  OK(cublasSetWorkspace(handle, workspace, 8 << 20));
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a.device, 8, b.device, 8, &zero, c.device, 8));
  OK(cublasSetStream(handle, nullptr));
  OK(cudaFree(workspace));
}

void random_numbers(curandRngType_t type) {
  const size_t n = 100000;
  curandGenerator_t generator;
  OK(curandCreateGenerator(&generator, type));
  OK(curandSetPseudoRandomGeneratorSeed(generator, 1234));
  Array<float> floats(n);
  Array<double> doubles(n);
  Array<unsigned> bits(n);
  const auto moments = [](const auto& of, double mean, double variance, double tolerance) {
    double m = 0, v = 0;
    for (const auto each : of) m += static_cast<double>(each) / of.size();
    for (const auto each : of) v += (static_cast<double>(each) - m) * (static_cast<double>(each) - m) / of.size();
    NEAR(m, mean, tolerance);
    NEAR(v, variance, 2 * tolerance);
  };
  OK(curandGenerateUniform(generator, floats.device, n));
  const auto first = floats.fetch();
  moments(first, 0.5, 1 / 12.0, 0.01);
  OK(curandGenerateUniform(generator, floats.device, n));
  if (floats.fetch() == first) complain("the same numbers again", __LINE__, 0, 1);
  OK(curandSetPseudoRandomGeneratorSeed(generator, 1234));
  OK(curandSetGeneratorOffset(generator, 0));
  OK(curandGenerateUniform(generator, floats.device, n));
  if (floats.fetch() != first) complain("other numbers after the same seed", __LINE__, 1, 0);
  OK(curandGenerateNormal(generator, floats.device, n, 3, 2));
  moments(floats.fetch(), 3, 4, 0.02);
  OK(curandGenerateLogNormal(generator, floats.device, n, 0, 0.5));
  moments(floats.fetch(), std::exp(0.125), (std::exp(0.25) - 1) * std::exp(0.25), 0.02);
  OK(curandGenerateUniformDouble(generator, doubles.device, n));
  moments(doubles.fetch(), 0.5, 1 / 12.0, 0.01);
  OK(curandGenerateNormalDouble(generator, doubles.device, n, -1, 1));
  moments(doubles.fetch(), -1, 1, 0.02);
  OK(curandGeneratePoisson(generator, bits.device, n, 12));
  moments(bits.fetch(), 12, 12, 0.02);
  OK(curandGenerate(generator, bits.device, n));
  moments(bits.fetch(), 2147483647.5, 4294967296.0 * 4294967296.0 / 12, 0.01);
  IS(curandGeneratePoisson(generator, bits.device, n, -1), CURAND_STATUS_OUT_OF_RANGE);
  OK(curandDestroyGenerator(generator));
}

// The same generator on the host and on the device.
void philox_on_host() {
  const size_t n = 4096;
  curandGenerator_t host, device;
  OK(curandCreateGeneratorHost(&host, CURAND_RNG_PSEUDO_PHILOX4_32_10));
  OK(curandCreateGenerator(&device, CURAND_RNG_PSEUDO_PHILOX4_32_10));
  Array<unsigned> bits(n);
  std::vector<unsigned> here(n);
  for (const curandGenerator_t each : {host, device}) OK(curandSetPseudoRandomGeneratorSeed(each, 99));
  OK(curandGenerate(host, here.data(), n));
  OK(curandGenerate(device, bits.device, n));
  if (bits.fetch() != here) complain("host and device differ", __LINE__, 0, 1);
  OK(curandDestroyGenerator(host));
  OK(curandDestroyGenerator(device));
}

int bad_address() {
  const float one = 1;
  Array<float> a(64);
  float host[64] = {};
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a.device, 8, a.device, 8, &one, a.device + (64 << 20),
                 8));
  const cudaError_t error = cudaMemcpy(host, a.device, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("bad address: %s\n", cudaGetErrorName(error));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  OK(cublasCreate(&handle));
  if (argc > 1 && std::strcmp(argv[1], "bad") == 0) return bad_address();
  group("gemm S", products<float>);
  group("gemm D", products<double>);
  group("gemm C", products<cuComplex>);
  group("gemm Z", products<cuDoubleComplex>);
  group("batched", [] { batches<float>(), batches<double>(), batches<cuComplex>(), batches<cuDoubleComplex>(); });
  group("symmetric S D", [] { symmetric_products<float>(), symmetric_products<double>(); });
  group("symmetric C Z", [] { symmetric_products<cuComplex>(), symmetric_products<cuDoubleComplex>(); });
  group("triangular S D", [] { triangular_products<float>(), triangular_products<double>(); });
  group("triangular C Z", [] { triangular_products<cuComplex>(), triangular_products<cuDoubleComplex>(); });
  group("sums and scales", [] { sums_and_scales<float>(), sums_and_scales<cuDoubleComplex>(); });
  group("level 1", [] { vectors<float>(), vectors<double>(); });
  group("level 2", [] { matrices_and_vectors<float>(), matrices_and_vectors<double>(); });
  group("half", [] { mixed<__half, __half, __half>(CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, 0.05); });
  group("half in single", [] { mixed<__half, float, float>(CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1e-3); });
  group("bfloat16",
        [] { mixed<__nv_bfloat16, __nv_bfloat16, float>(CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 0.02); });
  group("int8", [] { mixed<int8_t, int32_t, int32_t>(CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 0); });
  group("single and double", [] {
    mixed<float, float, float>(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1e-4);
    mixed<double, double, double>(CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 1e-11);
  });
  group("pointer modes", pointer_modes);
  group("edges", edges);
  group("random XORWOW", [] { random_numbers(CURAND_RNG_PSEUDO_DEFAULT); });
  group("random Philox", [] { random_numbers(CURAND_RNG_PSEUDO_PHILOX4_32_10); });
  group("random MRG32k3a", [] { random_numbers(CURAND_RNG_PSEUDO_MRG32K3A); });
  group("Philox on the host", philox_on_host);
  OK(cublasDestroy(handle));
  if (failures == 0) std::printf("PASS\n");
  return failures == 0 ? 0 : 1;
}
