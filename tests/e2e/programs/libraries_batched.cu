// cuBLAS's functions of batches: products, systems, factorizations, by arrays of addresses and by strides. Each is
// checked by what it has to fulfil. Prints a line for each group, its name and a digest of what the library answered;
// then PASS. With the argument `bad` it names a matrix that is not its own, and tells what comes of it.

#include <cstring>

#include "library_check.h"

namespace {

// clang-format off
#define TWINS(base, name) ALL(base, name) \
  OVERLOAD(float, cublasS##base##_64, name##_64) OVERLOAD(double, cublasD##base##_64, name##_64) \
  OVERLOAD(cuComplex, cublasC##base##_64, name##_64) OVERLOAD(cuDoubleComplex, cublasZ##base##_64, name##_64)
TWINS(gemvBatched, gemv_batched) TWINS(gemvStridedBatched, gemv_strided) TWINS(trsmBatched, trsm_batched)
ALL(getrfBatched, getrf) ALL(getriBatched, getri) ALL(getrsBatched, getrs) ALL(matinvBatched, matinv)
ALL(geqrfBatched, geqrf) ALL(gelsBatched, gels)
    // clang-format on

    cublasHandle_t handle;
constexpr int kCount = 5;

// Addresses in device memory of what lies `stride` elements apart.
template <class T>
struct Addresses {
  Addresses(const Array<T>& of, size_t stride) {
    std::vector<T*> host;
    for (int i = 0; i < kCount; ++i) host.push_back(of.device + i * stride);
    OK(cudaMalloc(&device, host.size() * sizeof(T*)));
    OK(cudaMemcpy(device, host.data(), host.size() * sizeof(T*), cudaMemcpyHostToDevice));
  }
  ~Addresses() { cudaFree(device); }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  T** device = nullptr;
};

struct Integers {
  explicit Integers(size_t count) : host(count, -1) {
    OK(cudaMalloc(&device, count * sizeof(int)));
    OK(cudaMemcpy(device, host.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  }
  ~Integers() { cudaFree(device); }
  Integers(const Integers&) = delete;
  Integers& operator=(const Integers&) = delete;
  const std::vector<int>& fetch() {
    OK(cudaMemcpy(host.data(), device, host.size() * sizeof(int), cudaMemcpyDeviceToHost));
    return host;
  }
  std::vector<int> host;
  int* device = nullptr;
};

void same(const Dense& got, const Dense& expected, double tolerance, int line) {
  for (size_t i = 0; i < expected.values.size(); ++i) {
    near(got.values[i].real(), expected.values[i].real(), tolerance, line);
    near(got.values[i].imag(), expected.values[i].imag(), tolerance, line);
  }
}

template <class T, class U>
void is_vectors(const Array<U>& y, const std::function<Dense(int)>& expected, size_t stride, int step, double tolerance,
                int line) {
  const auto got = y.fetch();
  for (int i = 0; i < kCount; ++i) {
    const Dense want = expected(i);
    const std::vector<U> mine(got.begin() + i * stride, got.begin() + (i + 1) * stride);
    same(column(mine, want.rows, step), want, tolerance, line);
  }
}

template <class T>
void matrix_vectors() {
  const T* const tag = nullptr;
  const int m = 9, n = 7, lda = 11, stride_a = lda * n + 3, stride_x = 20, stride_y = 30;
  const T alpha = make<T>(), beta = make<T>();
  for (const cublasOperation_t trans : kOps) {
    const int nx = trans == CUBLAS_OP_N ? n : m, ny = trans == CUBLAS_OP_N ? m : n;
    Array<T> a(stride_a * kCount), x(stride_x * kCount), y(stride_y * kCount);
    const Addresses<T> as(a, stride_a), xs(x, stride_x), ys(y, stride_y);
    const auto slice = [](const Array<T>& of, int i, int stride) {
      return std::vector<T>(of.host.begin() + i * stride, of.host.begin() + (i + 1) * stride);
    };
    const auto expected = [&](int i) {
      return sum(wide(alpha), op(dense(a.host, m, n, lda, i * stride_a), trans) * column(slice(x, i, stride_x), nx, 2),
                 wide(beta), column(slice(y, i, stride_y), ny, -3));
    };
    const auto check = [&](int line) {
      is_vectors<T>(y, expected, stride_y, -3, kTolerance<T>, line);
      y.send();
    };
    OK(gemv_batched(tag, handle, trans, m, n, &alpha, as.device, lda, xs.device, 2, &beta, ys.device, -3, kCount));
    check(__LINE__);
    OK(gemv_batched_64(tag, handle, trans, m, n, &alpha, as.device, lda, xs.device, 2, &beta, ys.device, -3, kCount));
    check(__LINE__);
    // By strides a step backwards begins behind the vector's first element, as by addresses.
    OK(gemv_strided(tag, handle, trans, m, n, &alpha, a.device, lda, stride_a, x.device, 2, stride_x, &beta, y.device,
                    -3, stride_y, kCount));
    check(__LINE__);
    OK(gemv_strided_64(tag, handle, trans, m, n, &alpha, a.device, lda, stride_a, x.device, 2, stride_x, &beta,
                       y.device, -3, stride_y, kCount));
    check(__LINE__);
  }
}

// Half precision and bfloat16, calculated in single precision.
template <class From, class To, class Batched, class Wide, class Strided>
void half_vectors(Batched batched, Wide wide_batched, Strided strided, double tolerance) {
  const int m = 8, n = 16, stride_a = m * n, stride_x = n, stride_y = m;
  const float alpha = 0.5f, beta = 2.0f;
  Array<From> a(stride_a * kCount), x(stride_x * kCount);
  Array<To> y(stride_y * kCount);
  for (To& each : y.host) each = To(0.25f);
  y.send();
  const Addresses<From> as(a, stride_a), xs(x, stride_x);
  const Addresses<To> ys(y, stride_y);
  const auto expected = [&](int i) {
    return sum(0.5, dense(a.host, m, n, m, i * stride_a) * dense(x.host, n, 1, n, i * stride_x), 2,
               dense(y.host, m, 1, m, i * stride_y));
  };
  const auto check = [&](int line) {
    is_vectors<From>(y, expected, stride_y, 1, tolerance, line);
    y.send();
  };
  OK(batched(handle, CUBLAS_OP_N, m, n, &alpha, as.device, m, xs.device, 1, &beta, ys.device, 1, kCount));
  check(__LINE__);
  OK(wide_batched(handle, CUBLAS_OP_N, m, n, &alpha, as.device, m, xs.device, 1, &beta, ys.device, 1, kCount));
  check(__LINE__);
  OK(strided(handle, CUBLAS_OP_N, m, n, &alpha, a.device, m, stride_a, x.device, 1, stride_x, &beta, y.device, 1,
             stride_y, kCount));
  check(__LINE__);
}

// Matrices of a batch that are far from singular.
template <class T>
struct Matrices {
  Matrices(int r, int c, int leading)
      : rows(r), columns(c), ld(leading), stride(leading * c + 1), array(stride * kCount) {
    for (int b = 0; b < kCount; ++b) {
      for (int i = 0; i < std::min(r, c); ++i) {
        T& each = array.host[b * stride + i + i * ld];
        if constexpr (kComplex<T>) each.x += 4;
        if constexpr (!kComplex<T>) each += 4;
      }
    }
    array.send();
  }
  Dense before(int b) const { return dense(array.host, rows, columns, ld, b * stride); }
  std::vector<Dense> fetch() const {
    const auto all = array.fetch();
    std::vector<Dense> each;
    for (int b = 0; b < kCount; ++b) each.push_back(dense(all, rows, columns, ld, b * stride));
    return each;
  }
  const int rows, columns, ld, stride;
  Array<T> array;
  const Addresses<T> addresses{array, static_cast<size_t>(stride)};
};

Dense identity(int n) {
  Dense to(n, n);
  for (int i = 0; i < n; ++i) to.at(i, i) = 1;
  return to;
}

// With pivots and without: systems are solved and matrices inverted by what was factorized.
template <class T>
void factorizations() {
  const T* const tag = nullptr;
  const int n = 12, columns = 3;
  for (const bool with_pivots : {true, false}) {
    Matrices<T> a(n, n, n + 2), b(n, columns, n + 1), c(n, n, n);
    Integers pivots(n * kCount), failures(kCount);
    int* const rows = with_pivots ? pivots.device : nullptr;
    OK(getrf(tag, handle, n, a.addresses.device, a.ld, rows, failures.device, kCount));
    for (const int failure : failures.fetch()) IS(failure, 0);
    for (const cublasOperation_t trans : kOps) {
      int info = -1;
      OK(getrs(tag, handle, trans, n, columns, a.addresses.device, a.ld, rows, b.addresses.device, b.ld, &info,
               kCount));
      IS(info, 0);
      const auto solved = b.fetch();
      for (int i = 0; i < kCount; ++i)
        same(op(a.before(i), trans) * solved[i], b.before(i), 10 * kTolerance<T>, __LINE__);
      b.array.send();
    }
    OK(getri(tag, handle, n, a.addresses.device, a.ld, rows, c.addresses.device, c.ld, failures.device, kCount));
    for (const int failure : failures.fetch()) IS(failure, 0);
    const auto inverses = c.fetch();
    for (int i = 0; i < kCount; ++i) same(a.before(i) * inverses[i], identity(n), 10 * kTolerance<T>, __LINE__);
  }
  Matrices<T> a(n, n, n + 2), c(n, n, n);
  Integers failures(kCount);
  OK(matinv(tag, handle, n, a.addresses.device, a.ld, c.addresses.device, c.ld, failures.device, kCount));
  for (const int failure : failures.fetch()) IS(failure, 0);
  const auto inverses = c.fetch();
  for (int i = 0; i < kCount; ++i) same(a.before(i) * inverses[i], identity(n), 10 * kTolerance<T>, __LINE__);
  // One of the batch is singular.
  for (int i = 0; i < n * a.ld; ++i) a.array.host[2 * a.stride + i] = T{};
  a.array.send();
  Integers pivots(n * kCount);
  OK(getrf(tag, handle, n, a.addresses.device, a.ld, pivots.device, failures.device, kCount));
  for (int i = 0; i < kCount; ++i) IS(failures.fetch()[i], i == 2 ? 1 : 0);
}

template <class T>
void least_squares() {
  const T* const tag = nullptr;
  const int m = 14, n = 9, columns = 2;
  int info = -1;
  {
    Matrices<T> a(m, n, m + 1);
    Array<T> factors(n * kCount);
    const Addresses<T> taus(factors, n);
    OK(geqrf(tag, handle, m, n, a.addresses.device, a.ld, taus.device, &info, kCount));
    IS(info, 0);
    const auto got = a.fetch();
    for (int i = 0; i < kCount; ++i) {  // R' R = A' A
      Dense r(n, n);
      for (int column = 0; column < n; ++column)
        for (int row = 0; row <= column; ++row) r.at(row, column) = got[i].at(row, column);
      same(op(r, CUBLAS_OP_C) * r, op(a.before(i), CUBLAS_OP_C) * a.before(i), 10 * kTolerance<T>, __LINE__);
    }
  }
  Matrices<T> a(m, n, m + 1), c(m, columns, m);
  Integers failures(kCount);
  OK(gels(tag, handle, CUBLAS_OP_N, m, n, columns, a.addresses.device, a.ld, c.addresses.device, c.ld, &info,
          failures.device, kCount));
  IS(info, 0);
  for (const int failure : failures.fetch()) IS(failure, 0);
  const auto got = c.fetch();
  for (int i = 0; i < kCount; ++i) {  // A' (A X - C) = 0
    Dense x(n, columns);
    for (int column = 0; column < columns; ++column)
      for (int row = 0; row < n; ++row) x.at(row, column) = got[i].at(row, column);
    const Dense whole = a.before(i);
    same(op(whole, CUBLAS_OP_C) * sum(1, whole * x, -1, c.before(i)), Dense(n, columns), 100 * kTolerance<T>, __LINE__);
  }
}

template <class T>
void systems() {
  const T* const tag = nullptr;
  const int m = 9, n = 6;
  const T alpha = make<T>();
  for (const cublasSideMode_t side : kSides) {
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;
    Matrices<T> a(order, order, order + 1), b(m, n, m + 2);
    const auto check = [&](int line) {
      const auto solved = b.fetch();
      for (int i = 0; i < kCount; ++i) {
        const Dense triangle = op(filled(a.before(i), CUBLAS_FILL_MODE_UPPER, false), CUBLAS_OP_T);
        const Dense back = side == CUBLAS_SIDE_LEFT ? triangle * solved[i] : solved[i] * triangle;
        same(back, sum(wide(alpha), b.before(i), 0, b.before(i)), 10 * kTolerance<T>, line);
      }
      b.array.send();
    };
    OK(trsm_batched(tag, handle, side, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, m, n, &alpha,
                    a.addresses.device, a.ld, b.addresses.device, b.ld, kCount));
    check(__LINE__);
    OK(trsm_batched_64(tag, handle, side, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, m, n, &alpha,
                       a.addresses.device, a.ld, b.addresses.device, b.ld, kCount));
    check(__LINE__);
  }
}

void complex_products() {
  using T = cuComplex;
  const int n = 8;
  const T alpha = make<T>(), beta = make<T>();
  Matrices<T> a(n, n, n), b(n, n, n), c(n, n, n);
  const auto check = [&](int line) {
    const auto got = c.fetch();
    for (int i = 0; i < kCount; ++i)
      same(got[i], sum(wide(alpha), a.before(i) * b.before(i), wide(beta), c.before(i)), kTolerance<T>, line);
    c.array.send();
  };
  const auto no = CUBLAS_OP_N;
  OK(cublasCgemm3mBatched(handle, no, no, n, n, n, &alpha, a.addresses.device, n, b.addresses.device, n, &beta,
                          c.addresses.device, n, kCount));
  check(__LINE__);
  OK(cublasCgemm3mBatched_64(handle, no, no, n, n, n, &alpha, a.addresses.device, n, b.addresses.device, n, &beta,
                             c.addresses.device, n, kCount));
  check(__LINE__);
  OK(cublasCgemm3mStridedBatched(handle, no, no, n, n, n, &alpha, a.array.device, n, a.stride, b.array.device, n,
                                 b.stride, &beta, c.array.device, n, c.stride, kCount));
  check(__LINE__);
  OK(cublasCgemm3mStridedBatched_64(handle, no, no, n, n, n, &alpha, a.array.device, n, a.stride, b.array.device, n,
                                    b.stride, &beta, c.array.device, n, c.stride, kCount));
  check(__LINE__);
}

// Groups of two and three products, of other sizes and scalars.
template <class T, class Integer, class Call>
void groups(Call call) {
  const std::vector<int> sizes = {2, 3};
  const int n = 8;
  Matrices<T> a(n, n, n), b(n, n, n), c(n, n, n);
  const std::vector<cublasOperation_t> ops = {CUBLAS_OP_N, CUBLAS_OP_T};
  const std::vector<Integer> orders = {5, n}, ld = {n, n}, counts = {2, 3};
  const std::vector<T> alpha = {T(2), T(-1)}, beta = {T(0.5), T(0)};
  OK(call(ops.data(), orders.data(), alpha.data(), a.addresses.device, ld.data(), b.addresses.device, beta.data(),
          c.addresses.device, counts.data()));
  const auto got = c.fetch();
  for (int i = 0; i < kCount; ++i) {
    const int which = i < 2 ? 0 : 1, order = static_cast<int>(orders[which]);
    const auto part = [&](const Matrices<T>& of) { return dense(of.array.host, order, order, of.ld, i * of.stride); };
    const Dense expected = sum(alpha[which], op(part(a), ops[which]) * op(part(b), ops[which]), beta[which], part(c));
    for (int column = 0; column < order; ++column)
      for (int row = 0; row < order; ++row)
        NEAR(got[i].at(row, column).real(), expected.at(row, column).real(), kTolerance<T>);
  }
}

void grouped() {
#define GROUPED(T, Integer, function)                                                                                 \
  groups<T, Integer>([](auto ops, auto orders, auto alpha, auto a, auto ld, auto b, auto beta, auto c, auto counts) { \
    return function(handle, ops, ops, orders, orders, orders, alpha, a, ld, b, ld, beta, c, ld, 2, counts);           \
  })
  GROUPED(float, int, cublasSgemmGroupedBatched);
  GROUPED(float, int64_t, cublasSgemmGroupedBatched_64);
  GROUPED(double, int, cublasDgemmGroupedBatched);
  GROUPED(double, int64_t, cublasDgemmGroupedBatched_64);
  groups<float, int>([](auto ops, auto orders, auto alpha, auto a, auto ld, auto b, auto beta, auto c, auto counts) {
    return cublasGemmGroupedBatchedEx(handle, ops, ops, orders, orders, orders, alpha,
                                      reinterpret_cast<const void* const*>(a), CUDA_R_32F, ld,
                                      reinterpret_cast<const void* const*>(b), CUDA_R_32F, ld, beta,
                                      reinterpret_cast<void* const*>(c), CUDA_R_32F, ld, 2, counts, CUBLAS_COMPUTE_32F);
  });
}

// What makes no sense is refused at once, also where the answer has a place on the host.
void refusals() {
  Matrices<float> a(4, 4, 4);
  Integers some(16);
  const float one = 1;
  int info = 0;
  IS(cublasSgetrfBatched(handle, -1, a.addresses.device, 4, some.device, some.device, 1), CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasSgetrfBatched(handle, 4, a.addresses.device, 3, some.device, some.device, 1), CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasSgetrsBatched(handle, CUBLAS_OP_N, 4, -1, a.addresses.device, 4, nullptr, a.addresses.device, 4, &info, 1),
     CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasSmatinvBatched(handle, 33, a.addresses.device, 33, a.addresses.device, 33, some.device, 1),
     CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasSgemvBatched(handle, CUBLAS_OP_N, 4, 4, &one, a.addresses.device, 4, a.addresses.device, 0, &one,
                        a.addresses.device, 1, 1),
     CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasStrsmBatched(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 4, 4, &one,
                        a.addresses.device, 4, a.addresses.device, 4, -1),
     CUBLAS_STATUS_INVALID_VALUE);
}

int bad_address() {
  Matrices<float> a(4, 4, 4);
  Integers some(4 * kCount);
  float* wrong = a.array.device + (64 << 20);
  OK(cudaMemcpy(a.addresses.device + 3, &wrong, sizeof wrong, cudaMemcpyHostToDevice));
  OK(cublasSgetrfBatched(handle, 4, a.addresses.device, 4, some.device, some.device, kCount));
  std::printf("bad address: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  OK(cublasCreate(&handle));
  if (argc > 1 && std::strcmp(argv[1], "bad") == 0) return bad_address();
  group("gemv batched", [] {
    matrix_vectors<float>(), matrix_vectors<double>(), matrix_vectors<cuComplex>(), matrix_vectors<cuDoubleComplex>();
  });
  group("gemv of halves", [] {
    using B = __nv_bfloat16;
    half_vectors<__half, __half>(cublasHSHgemvBatched, cublasHSHgemvBatched_64, cublasHSHgemvStridedBatched, 1e-2);
    half_vectors<__half, float>(cublasHSSgemvBatched, cublasHSSgemvBatched_64, cublasHSSgemvStridedBatched, 1e-3);
    half_vectors<B, B>(cublasTSTgemvBatched, cublasTSTgemvBatched_64, cublasTSTgemvStridedBatched, 5e-2);
    half_vectors<B, float>(cublasTSSgemvBatched, cublasTSSgemvBatched_64, cublasTSSgemvStridedBatched, 1e-3);
  });
  group("trsm batched", [] { systems<float>(), systems<double>(), systems<cuComplex>(), systems<cuDoubleComplex>(); });
  group("getrf and its kin S D", [] { factorizations<float>(), factorizations<double>(); });
  group("getrf and its kin C Z", [] { factorizations<cuComplex>(), factorizations<cuDoubleComplex>(); });
  group("geqrf gels S D", [] { least_squares<float>(), least_squares<double>(); });
  group("geqrf gels C Z", [] { least_squares<cuComplex>(), least_squares<cuDoubleComplex>(); });
  group("gemm3m batched", complex_products);
  group("grouped", grouped);
  // NVIDIA's library takes some of it.
  if (std::getenv("HEDDLE_JOB")) group("refusals", refusals);
  OK(cublasDestroy(handle));
  if (failures == 0) std::printf("PASS\n");
  return failures == 0 ? 0 : 1;
}
