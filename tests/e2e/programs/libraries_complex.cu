// cuBLAS's functions of complex numbers, levels 1 to 3, and their twins with sizes of 64 bits, each against a plain
// calculation on the host. Prints a line for each group, its name and a digest of what the library answered; then PASS.

#include <cstring>

#include "library_check.h"

namespace {

// Each function and its twin.
// clang-format off
#define TWINS(base, name) COMPLEX(base, name) \
  OVERLOAD(cuComplex, cublasC##base##_64, name##_64) OVERLOAD(cuDoubleComplex, cublasZ##base##_64, name##_64)
#define NAMED_TWINS(single, twice, name) \
  OVERLOAD(cuComplex, cublas##single, name) OVERLOAD(cuDoubleComplex, cublas##twice, name) \
  OVERLOAD(cuComplex, cublas##single##_64, name##_64) OVERLOAD(cuDoubleComplex, cublas##twice##_64, name##_64)
TWINS(dotu, dotu) TWINS(dotc, dotc) TWINS(axpy, axpy) TWINS(scal, scal) TWINS(copy, copy) TWINS(swap, swap)
TWINS(rot, rot) NAMED_TWINS(Csscal, Zdscal, real_scal) NAMED_TWINS(Csrot, Zdrot, real_rot)
NAMED_TWINS(Scnrm2, Dznrm2, nrm2) NAMED_TWINS(Scasum, Dzasum, asum) COMPLEX(rotg, rotg)
NAMED_TWINS(Icamax, Izamax, iamax) NAMED_TWINS(Icamin, Izamin, iamin)
TWINS(gemv, gemv) TWINS(gbmv, gbmv) TWINS(geru, geru) TWINS(gerc, gerc) TWINS(symv, symv) TWINS(hemv, hemv)
TWINS(hbmv, hbmv) TWINS(hpmv, hpmv) TWINS(syr, syr) TWINS(her, her) TWINS(hpr, hpr) TWINS(syr2, syr2)
TWINS(her2, her2) TWINS(hpr2, hpr2) TWINS(trmv, trmv) TWINS(trsv, trsv) TWINS(tbmv, tbmv) TWINS(tbsv, tbsv)
TWINS(tpmv, tpmv) TWINS(tpsv, tpsv)
TWINS(hemm, hemm) TWINS(herk, herk) TWINS(her2k, her2k) TWINS(herkx, herkx) TWINS(gemm3m, gemm3m)
COMPLEX(tpttr, tpttr) COMPLEX(trttp, trttp)
    // clang-format on

    cublasHandle_t handle;

template <class T>
using Real = std::conditional_t<std::is_same_v<T, cuComplex>, float, double>;

// The function leaves `array` as its twin does, bit by bit; the array holds that afterwards.
#define BOTH(array, function, ...)                                      \
  do {                                                                  \
    OK(function(tag, handle, __VA_ARGS__));                             \
    const auto plain = raw(array);                                      \
    (array).send();                                                     \
    OK(function##_64(tag, handle, __VA_ARGS__));                        \
    if (raw(array) != plain) complain(#function "_64", __LINE__, 1, 0); \
  } while (false)

template <class T>
std::vector<unsigned char> raw(const Array<T>& array) {
  std::vector<unsigned char> bytes(array.host.size() * sizeof(T));
  OK(cudaMemcpy(bytes.data(), array.device, bytes.size(), cudaMemcpyDeviceToHost));
  return bytes;
}

void same(Complex got, Complex expected, double tolerance, int line) {
  near(got.real(), expected.real(), tolerance, line);
  near(got.imag(), expected.imag(), tolerance, line);
}

template <class T>
void vectors() {
  const T* const tag = nullptr;
  const int n = 67;
  for (const auto& [step_x, step_y] : {std::pair(1, 1), {2, 3}, {-1, 2}}) {
    Array<T> x(n * 3), y(n * 3);
    const Dense u = column(x.host, n, step_x), v = column(y.host, n, step_y);
    const T alpha = make<T>();
    T answer, answer_64;
    OK(dotu(tag, handle, n, x.device, step_x, y.device, step_y, &answer));
    same(wide(answer), (op(u, CUBLAS_OP_T) * v).at(0, 0), kTolerance<T>, __LINE__);
    OK(dotu_64(tag, handle, n, x.device, step_x, y.device, step_y, &answer_64));
    IS(std::memcmp(&answer, &answer_64, sizeof answer), 0);
    take(&answer, sizeof answer);
    OK(dotc(tag, handle, n, x.device, step_x, y.device, step_y, &answer));
    same(wide(answer), (op(u, CUBLAS_OP_C) * v).at(0, 0), kTolerance<T>, __LINE__);
    OK(dotc_64(tag, handle, n, x.device, step_x, y.device, step_y, &answer_64));
    IS(std::memcmp(&answer, &answer_64, sizeof answer), 0);
    BOTH(y, axpy, n, &alpha, x.device, step_x, y.device, step_y);
    compare_vector(y, sum(wide(alpha), u, 1, v), step_y, __LINE__);
    y.send();
    const Real<T> c = Real<T>(0.6), minus = Real<T>(-0.8);
    T s = make<T>();
    s.x *= Real<T>(0.5), s.y *= Real<T>(0.5);
    OK(rot(tag, handle, n, x.device, step_x, y.device, step_y, &c, &s));
    compare_vector(x, sum(c, u, wide(s), v), step_x, __LINE__);
    compare_vector(y, sum(c, v, -std::conj(wide(s)), u), step_y, __LINE__);
    x.send(), y.send();
    OK(rot_64(tag, handle, n, x.device, step_x, y.device, step_y, &c, &s));
    compare_vector(x, sum(c, u, wide(s), v), step_x, __LINE__);
    x.send(), y.send();
    OK(real_rot(tag, handle, n, x.device, step_x, y.device, step_y, &c, &minus));
    compare_vector(x, sum(c, u, minus, v), step_x, __LINE__);
    compare_vector(y, sum(c, v, -minus, u), step_y, __LINE__);
    x.send(), y.send();
    OK(real_rot_64(tag, handle, n, x.device, step_x, y.device, step_y, &c, &minus));
    compare_vector(y, sum(c, v, -minus, u), step_y, __LINE__);
    x.send(), y.send();
    OK(swap(tag, handle, n, x.device, step_x, y.device, step_y));
    compare_vector(x, v, step_x, __LINE__);
    OK(swap_64(tag, handle, n, x.device, step_x, y.device, step_y));
    compare_vector(x, u, step_x, __LINE__);
    BOTH(y, copy, n, x.device, step_x, y.device, step_y);
    compare_vector(y, u, step_y, __LINE__);
  }
}

template <class T>
void reductions() {
  const T* const tag = nullptr;
  const int n = 67;
  Array<T> x(n * 2);
  const auto size = [&](int i) { return std::fabs(x.host[2 * i].x) + std::fabs(x.host[2 * i].y); };
  double squares = 0, sizes = 0;
  int largest = 0, smallest = 0;
  for (int i = 0; i < n; ++i) {
    squares += std::norm(wide(x.host[2 * i])), sizes += size(i);
    if (size(i) > size(largest)) largest = i;
    if (size(i) < size(smallest)) smallest = i;
  }
  Real<T> answer;
  int index;
  int64_t index_64;
  OK(nrm2(tag, handle, n, x.device, 2, &answer));
  NEAR(answer, std::sqrt(squares), kTolerance<T>);
  OK(nrm2_64(tag, handle, n, x.device, 2, &answer));
  NEAR(answer, std::sqrt(squares), kTolerance<T>);
  OK(asum(tag, handle, n, x.device, 2, &answer));
  NEAR(answer, sizes, kTolerance<T>);
  OK(asum_64(tag, handle, n, x.device, 2, &answer));
  NEAR(answer, sizes, kTolerance<T>);
  OK(iamax(tag, handle, n, x.device, 2, &index));
  IS(index, largest + 1);
  OK(iamax_64(tag, handle, n, x.device, 2, &index_64));
  IS(index_64, largest + 1);
  OK(iamin(tag, handle, n, x.device, 2, &index));
  IS(index, smallest + 1);
  OK(iamin_64(tag, handle, n, x.device, 2, &index_64));
  IS(index_64, smallest + 1);
  const T alpha = make<T>();
  const Real<T> factor = Real<T>(-1.5);
  const Dense u = column(x.host, n, 2);
  BOTH(x, scal, n, &alpha, x.device, 2);
  compare_vector(x, sum(wide(alpha), u, 0, u), 2, __LINE__);
  x.send();
  BOTH(x, real_scal, n, &factor, x.device, 2);
  compare_vector(x, sum(-1.5, u, 0, u), 2, __LINE__);
  T a{3, 0}, b{0, 4}, s;
  Real<T> c;
  OK(rotg(tag, handle, &a, &b, &c, &s));
  NEAR(std::abs(wide(a)), 5, kTolerance<T>);
  same(Complex(c) * 3.0 + wide(s) * Complex(0, 4), wide(a), kTolerance<T>, __LINE__);
}

template <class T>
void general_vectors() {
  const T* const tag = nullptr;
  const int m = 31, n = 22, below = 3, above = 2, lda = 35;
  const T alpha = make<T>(), beta = make<T>();
  for (const cublasOperation_t trans : kOps) {
    const int nx = trans == CUBLAS_OP_N ? n : m, ny = trans == CUBLAS_OP_N ? m : n;
    Array<T> a(lda * n), x(2 * nx), y(3 * ny);
    const auto expected = [&](const Dense& whole, int step_x, int step_y) {
      return sum(wide(alpha), op(whole, trans) * column(x.host, nx, step_x), wide(beta), column(y.host, ny, step_y));
    };
    BOTH(y, gemv, trans, m, n, &alpha, a.device, lda, x.device, 2, &beta, y.device, -3);
    compare_vector(y, expected(dense(a.host, m, n, lda), 2, -3), -3, __LINE__);
    y.send();
    BOTH(y, gbmv, trans, m, n, below, above, &alpha, a.device, lda, x.device, 1, &beta, y.device, 2);
    Dense band(m, n);
    for (int j = 0; j < n; ++j)
      for (int i = std::max(0, j - above); i < std::min(m, j + below + 1); ++i)
        band.at(i, j) = wide(a.host[above + i - j + j * lda]);
    compare_vector(y, expected(band, 1, 2), 2, __LINE__);
  }
  Array<T> a(lda * n), x(m), y(2 * n);
  const Dense u = column(x.host, m, 1), v = column(y.host, n, 2), before = dense(a.host, m, n, lda);
  BOTH(a, geru, m, n, &alpha, x.device, 1, y.device, 2, a.device, lda);
  compare(a.fetch(), a.host, sum(wide(alpha), u * op(v, CUBLAS_OP_T), 1, before), lda, kTolerance<T>, __LINE__);
  a.send();
  BOTH(a, gerc, m, n, &alpha, x.device, 1, y.device, 2, a.device, lda);
  compare(a.fetch(), a.host, sum(wide(alpha), u * op(v, CUBLAS_OP_C), 1, before), lda, kTolerance<T>, __LINE__);
}

// The whole matrix of which one triangle is stored; a Hermitian one has a real diagonal.
Dense whole_of(const Dense& half, cublasFillMode_t fill, bool hermitian) {
  Dense to = filled(half, fill, true);
  for (int j = 0; j < to.columns && hermitian; ++j) {
    for (int i = 0; i < to.rows; ++i) {
      const bool stored = fill == CUBLAS_FILL_MODE_UPPER ? i <= j : i >= j;
      if (!stored) to.at(i, j) = std::conj(to.at(i, j));
      if (i == j) to.at(i, j) = to.at(i, j).real();
    }
  }
  return to;
}

template <class T>
struct Triangle {
  static constexpr int n = 22, lda = 25, band = 4;
  Triangle(cublasFillMode_t mode) : fill(mode), a(lda * n), packed(n * (n + 1) / 2), x(2 * n), y(n) {
    for (int i = 0; i < n; ++i) a.host[i + i * lda].x += 4;  // triangles that can be solved
    for (int i = 0; i < n; ++i) packed.host[place(i, i)].x += 4;
    a.send(), packed.send();
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < n; ++i) {
        if (!stored(i, j)) continue;
        unpacked.at(i, j) = wide(packed.host[place(i, j)]);
        if (std::abs(i - j) <= band) banded.at(i, j) = wide(a.host[(upper() ? band + i - j : i - j) + j * lda]);
      }
    }
    half = dense(a.host, n, n, lda), u = column(x.host, n, 2), v = column(y.host, n, 1);
  }
  bool upper() const { return fill == CUBLAS_FILL_MODE_UPPER; }
  bool stored(int i, int j) const { return upper() ? i <= j : i >= j; }
  int place(int i, int j) const { return upper() ? i + j * (j + 1) / 2 : i + (2 * n - j - 1) * j / 2; }
  // What an update left of the stored triangle; the diagonal of a Hermitian matrix is real.
  void compare_update(const Dense& added, bool hermitian, int line) const {
    Dense expected = sum(1, half, 1, added);
    for (int i = 0; i < n && hermitian; ++i) expected.at(i, i) = expected.at(i, i).real();
    compare(a.fetch(), a.host, expected, lda, kTolerance<T>, line, [this](int i, int j) { return stored(i, j); });
  }
  void compare_packed(const Dense& added, int line) const {
    const auto got = packed.fetch();
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < n; ++i) {
        const Complex expected = unpacked.at(i, j) + added.at(i, j);
        if (stored(i, j)) same(wide(got[place(i, j)]), i == j ? expected.real() : expected, kTolerance<T>, line);
      }
    }
  }

  const cublasFillMode_t fill;
  Array<T> a, packed, x, y;
  Dense half{0, 0}, u{0, 0}, v{0, 0}, banded{n, n}, unpacked{n, n};
};

template <class T>
void symmetric_vectors() {
  const T* const tag = nullptr;
  const T alpha = make<T>(), beta = make<T>();
  const Real<T> real = Real<T>(0.75);
  const Complex al = wide(alpha), be = wide(beta);
  for (const cublasFillMode_t fill : kFills) {
    Triangle<T> t(fill);
    const int n = t.n, lda = t.lda;
    const auto multiplied = [&](const Dense& whole) { return sum(al, whole * t.u, be, t.v); };
    BOTH(t.y, symv, fill, n, &alpha, t.a.device, lda, t.x.device, 2, &beta, t.y.device, 1);
    compare_vector(t.y, multiplied(whole_of(t.half, fill, false)), 1, __LINE__);
    t.y.send();
    BOTH(t.y, hemv, fill, n, &alpha, t.a.device, lda, t.x.device, 2, &beta, t.y.device, 1);
    compare_vector(t.y, multiplied(whole_of(t.half, fill, true)), 1, __LINE__);
    t.y.send();
    BOTH(t.y, hbmv, fill, n, t.band, &alpha, t.a.device, lda, t.x.device, 2, &beta, t.y.device, 1);
    compare_vector(t.y, multiplied(whole_of(t.banded, fill, true)), 1, __LINE__);
    t.y.send();
    BOTH(t.y, hpmv, fill, n, &alpha, t.packed.device, t.x.device, 2, &beta, t.y.device, 1);
    compare_vector(t.y, multiplied(whole_of(t.unpacked, fill, true)), 1, __LINE__);
    t.y.send();

    const Dense uh = op(t.u, CUBLAS_OP_C), ut = op(t.u, CUBLAS_OP_T), vh = op(t.v, CUBLAS_OP_C),
                vt = op(t.v, CUBLAS_OP_T);
    const Dense scaled = sum(al, t.u * vt, al, t.v * ut), hermitian = sum(al, t.u * vh, std::conj(al), t.v * uh);
    BOTH(t.a, syr, fill, n, &alpha, t.x.device, 2, t.a.device, lda);
    t.compare_update(sum(al, t.u * ut, 0, t.u * ut), false, __LINE__);
    t.a.send();
    BOTH(t.a, her, fill, n, &real, t.x.device, 2, t.a.device, lda);
    t.compare_update(sum(0.75, t.u * uh, 0, t.u * uh), true, __LINE__);
    t.a.send();
    BOTH(t.a, syr2, fill, n, &alpha, t.x.device, 2, t.y.device, 1, t.a.device, lda);
    t.compare_update(scaled, false, __LINE__);
    t.a.send();
    BOTH(t.a, her2, fill, n, &alpha, t.x.device, 2, t.y.device, 1, t.a.device, lda);
    t.compare_update(hermitian, true, __LINE__);
    BOTH(t.packed, hpr, fill, n, &real, t.x.device, 2, t.packed.device);
    t.compare_packed(sum(0.75, t.u * uh, 0, t.u * uh), __LINE__);
    t.packed.send();
    BOTH(t.packed, hpr2, fill, n, &alpha, t.x.device, 2, t.y.device, 1, t.packed.device);
    t.compare_packed(hermitian, __LINE__);
  }
}

// There and back again.
template <class T>
void triangular_vectors() {
  const T* const tag = nullptr;
  const cublasDiagType_t diag = CUBLAS_DIAG_NON_UNIT;
  for (const cublasFillMode_t fill : kFills) {
    Triangle<T> t(fill);
    const int n = t.n, lda = t.lda;
    for (const cublasOperation_t trans : kOps) {
      const Dense whole = op(filled(t.half, fill, false), trans), thin = op(filled(t.banded, fill, false), trans);
      const Dense tight = op(filled(t.unpacked, fill, false), trans);
      BOTH(t.x, trmv, fill, trans, diag, n, t.a.device, lda, t.x.device, 2);
      compare_vector(t.x, whole * t.u, 2, __LINE__);
      OK(trsv(tag, handle, fill, trans, diag, n, t.a.device, lda, t.x.device, 2));
      compare_vector(t.x, t.u, 2, __LINE__);
      t.x.send();
      BOTH(t.x, trsv, fill, trans, diag, n, t.a.device, lda, t.x.device, 2);
      t.x.send();
      BOTH(t.x, tpmv, fill, trans, diag, n, t.packed.device, t.x.device, 2);
      compare_vector(t.x, tight * t.u, 2, __LINE__);
      OK(tpsv(tag, handle, fill, trans, diag, n, t.packed.device, t.x.device, 2));
      compare_vector(t.x, t.u, 2, __LINE__);
      t.x.send();
      BOTH(t.x, tpsv, fill, trans, diag, n, t.packed.device, t.x.device, 2);
      t.x.send();
      BOTH(t.x, tbmv, fill, trans, diag, n, t.band, t.a.device, lda, t.x.device, 2);
      compare_vector(t.x, thin * t.u, 2, __LINE__);
      t.x.send();
      BOTH(t.x, tbsv, fill, trans, CUBLAS_DIAG_UNIT, n, 0, t.a.device, lda, t.x.device, 2);  // by the identity
      compare_vector(t.x, t.u, 2, __LINE__);
      t.x.send();
    }
  }
}

template <class T>
void hermitian_products() {
  const T* const tag = nullptr;
  const int m = 23, n = 17, k = 11;
  const T alpha = make<T>(), beta = make<T>();
  const Real<T> real = Real<T>(0.75), factor = Real<T>(-0.5);
  const Complex al = wide(alpha), be = wide(beta);
  for (const cublasFillMode_t fill : kFills) {
    const auto stored = [fill](int i, int j) { return fill == CUBLAS_FILL_MODE_UPPER ? i <= j : i >= j; };
    for (const cublasSideMode_t side : kSides) {
      const int order = side == CUBLAS_SIDE_LEFT ? m : n, lda = order + 1, ldb = m, ldc = m + 4;
      Array<T> a(lda * order), b(ldb * n), c(ldc * n);
      BOTH(c, hemm, side, fill, m, n, &alpha, a.device, lda, b.device, ldb, &beta, c.device, ldc);
      const Dense whole = whole_of(dense(a.host, order, order, lda), fill, true), other = dense(b.host, m, n, ldb);
      const Dense product = side == CUBLAS_SIDE_LEFT ? whole * other : other * whole;
      compare(c.fetch(), c.host, sum(al, product, be, dense(c.host, m, n, ldc)), ldc, kTolerance<T>, __LINE__);
    }
    for (const cublasOperation_t trans : {CUBLAS_OP_N, CUBLAS_OP_C}) {
      const int rows = trans == CUBLAS_OP_N ? n : k, columns = trans == CUBLAS_OP_N ? k : n, ld = rows + 2, ldc = n + 1;
      Array<T> a(ld * columns), b(ld * columns), c(ldc * n), d(ldc * n), e(ldc * n);
      for (Array<T>* each : {&c, &d, &e}) {  // Hermitian, as far as it is stored
        for (int i = 0; i < n; ++i) each->host[i + i * ldc].y = 0;
        each->send();
      }
      BOTH(c, herk, fill, trans, n, k, &real, a.device, ld, &factor, c.device, ldc);
      BOTH(d, her2k, fill, trans, n, k, &alpha, a.device, ld, b.device, ld, &factor, d.device, ldc);
      // Of which the product is Hermitian: both are one matrix.
      const T one{Real<T>(0.75), 0};
      BOTH(e, herkx, fill, trans, n, k, &one, a.device, ld, a.device, ld, &factor, e.device, ldc);
      const Dense left = op(dense(a.host, rows, columns, ld), trans),
                  right = op(dense(b.host, rows, columns, ld), trans);
      const Dense square = left * op(left, CUBLAS_OP_C), mixed = left * op(right, CUBLAS_OP_C);
      compare(c.fetch(), c.host, sum(0.75, square, -0.5, dense(c.host, n, n, ldc)), ldc, kTolerance<T>, __LINE__,
              stored);
      const Dense both = sum(al, mixed, std::conj(al), op(mixed, CUBLAS_OP_C));
      compare(d.fetch(), d.host, sum(1, both, -0.5, dense(d.host, n, n, ldc)), ldc, kTolerance<T>, __LINE__, stored);
      compare(e.fetch(), e.host, sum(0.75, square, -0.5, dense(e.host, n, n, ldc)), ldc, kTolerance<T>, __LINE__,
              stored);
    }
  }
  const int lda = m + 1, ldb = k + 2, ldc = m + 3;
  Array<T> a(lda * k), b(ldb * n), c(ldc * n);
  BOTH(c, gemm3m, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a.device, lda, b.device, ldb, &beta, c.device, ldc);
  compare(c.fetch(), c.host, sum(al, dense(a.host, m, k, lda) * dense(b.host, k, n, ldb), be, dense(c.host, m, n, ldc)),
          ldc, kTolerance<T>, __LINE__);
}

template <class T>
void packing() {
  const T* const tag = nullptr;
  for (const cublasFillMode_t fill : kFills) {
    Triangle<T> t(fill);
    OK(tpttr(tag, handle, fill, t.n, t.packed.device, t.a.device, t.lda));
    compare(t.a.fetch(), t.a.host, t.unpacked, t.lda, 0, __LINE__, [&](int i, int j) { return t.stored(i, j); });
    t.a.send();
    OK(trttp(tag, handle, fill, t.n, t.a.device, t.lda, t.packed.device));
    const auto got = t.packed.fetch();
    for (int j = 0; j < t.n; ++j)
      for (int i = 0; i < t.n; ++i)
        if (t.stored(i, j)) same(wide(got[t.place(i, j)]), t.half.at(i, j), 0, __LINE__);
  }
}

// The forms of level 3 whose types are arguments.
void typed_products() {
  using T = cuComplex;
  const int m = 23, n = 17, k = 11, ldc = m + 1;
  const T alpha = make<T>(), beta = make<T>();
  Array<T> a(m * k), b(k * n), c(ldc * n), d(ldc * m);
  const Complex al = wide(alpha), be = wide(beta);
  const auto product = sum(al, dense(a.host, m, k, m) * dense(b.host, k, n, k), be, dense(c.host, m, n, ldc));
  const auto is_product = [&](cublasStatus_t status, int line) {
    OK(status);
    compare(c.fetch(), c.host, product, ldc, kTolerance<T>, line);
    c.send();
  };
#define TYPED(function)                                                                                     \
  is_product(function(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a.device, CUDA_C_32F, m, b.device, \
                      CUDA_C_32F, k, &beta, c.device, CUDA_C_32F, ldc),                                     \
             __LINE__)
  TYPED(cublasCgemmEx);
  TYPED(cublasCgemmEx_64);
  TYPED(cublasCgemm3mEx);
  TYPED(cublasCgemm3mEx_64);
  const auto lower = [](int i, int j) { return i >= j; };
  for (int i = 0; i < m; ++i) d.host[i + i * ldc].y = 0;
  d.send();
  const Dense left = dense(a.host, m, k, m), before = dense(d.host, m, m, ldc);
  const auto is_update = [&](cublasStatus_t status, const Dense& expected, int line) {
    OK(status);
    compare(d.fetch(), d.host, expected, ldc, kTolerance<T>, line, lower);
    d.send();
  };
  const float real = 0.75f, factor = -0.5f;
  const Dense symmetric = sum(al, left * op(left, CUBLAS_OP_T), be, before);
  const Dense hermitian = sum(0.75, left * op(left, CUBLAS_OP_C), -0.5, before);
#define UPDATED(function, first, second, expected)                                                                \
  is_update(function(handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, m, k, &first, a.device, CUDA_C_32F, m, &second, \
                     d.device, CUDA_C_32F, ldc),                                                                  \
            expected, __LINE__)
  UPDATED(cublasCsyrkEx, alpha, beta, symmetric);
  UPDATED(cublasCsyrkEx_64, alpha, beta, symmetric);
  UPDATED(cublasCsyrk3mEx, alpha, beta, symmetric);
  UPDATED(cublasCsyrk3mEx_64, alpha, beta, symmetric);
  UPDATED(cublasCherkEx, real, factor, hermitian);
  UPDATED(cublasCherkEx_64, real, factor, hermitian);
  UPDATED(cublasCherk3mEx, real, factor, hermitian);
  UPDATED(cublasCherk3mEx_64, real, factor, hermitian);
}

// What makes no sense is refused at once.
void refusals() {
  Array<cuComplex> a(64);
  const float one = 1;
  const cuComplex whole{1, 0};
  IS(cublasCherk(handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, 4, 4, &one, a.device, 4, &one, a.device, 4),
     CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasChemv(handle, CUBLAS_FILL_MODE_FULL, 4, &whole, a.device, 4, a.device, 1, &whole, a.device, 1),
     CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasCgemv(handle, CUBLAS_OP_N, 4, 4, &whole, a.device, 3, a.device, 1, &whole, a.device, 1),
     CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasCgeru(handle, 4, 4, &whole, a.device, 0, a.device, 1, a.device, 4), CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasZtrsv(handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, -1, nullptr, 1, nullptr, 1),
     CUBLAS_STATUS_INVALID_VALUE);
}

}  // namespace

int main() {
  OK(cublasCreate(&handle));
  group("level 1 C Z", [] { vectors<cuComplex>(), vectors<cuDoubleComplex>(); });
  group("reductions C Z", [] { reductions<cuComplex>(), reductions<cuDoubleComplex>(); });
  group("level 2 C Z", [] { general_vectors<cuComplex>(), general_vectors<cuDoubleComplex>(); });
  group("Hermitian level 2", [] { symmetric_vectors<cuComplex>(), symmetric_vectors<cuDoubleComplex>(); });
  group("triangular level 2", [] { triangular_vectors<cuComplex>(), triangular_vectors<cuDoubleComplex>(); });
  group("Hermitian level 3", [] { hermitian_products<cuComplex>(), hermitian_products<cuDoubleComplex>(); });
  group("packing", [] { packing<cuComplex>(), packing<cuDoubleComplex>(); });
  group("typed products", typed_products);
  // NVIDIA's library takes some of it.
  if (std::getenv("HEDDLE_JOB")) group("refusals", refusals);
  OK(cublasDestroy(handle));
  if (failures == 0) std::printf("PASS\n");
  return failures == 0 ? 0 : 1;
}
