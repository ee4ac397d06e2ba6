// The interface of cublas.h: no handle, scalars by value, answers returned. A function or two of each form. Prints
// PASS.

#include <cublas.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void expect(double got, double expected, const char* what, int line) {
  if (std::fabs(got - expected) <= 1e-4 * (1 + std::fabs(expected))) return;
  std::printf("FAIL: %s (line %d): %g, expected %g\n", what, line, got, expected);
  std::exit(1);
}
#define IS(got, expected) expect(static_cast<double>(got), static_cast<double>(expected), #got, __LINE__)
#define OK(call) IS(call, CUBLAS_STATUS_SUCCESS)

template <class T>
struct Vector {
  explicit Vector(const std::vector<T>& from) : host(from) {
    OK(cublasAlloc(static_cast<int>(host.size()), sizeof(T), reinterpret_cast<void**>(&device)));
    OK(cublasSetVector(static_cast<int>(host.size()), sizeof(T), host.data(), 1, device, 1));
  }
  ~Vector() { cublasFree(device); }
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;
  const std::vector<T>& fetch() {
    OK(cublasGetVector(static_cast<int>(host.size()), sizeof(T), device, 1, host.data(), 1));
    return host;
  }
  std::vector<T> host;
  T* device = nullptr;
};

void real_numbers() {
  Vector<float> x({1, 2, 3, 4}), y({4, 3, 2, 1}), a({1, 2, 3, 4});
  IS(cublasSdot(4, x.device, 1, y.device, 1), 20);
  IS(cublasSnrm2(4, x.device, 1), std::sqrt(30.0));
  IS(cublasSasum(4, x.device, 1), 10);
  IS(cublasIsamax(4, x.device, 1), 4);
  IS(cublasIsamin(4, x.device, 1), 1);
  cublasSaxpy(4, 2.0f, x.device, 1, y.device, 1);
  IS(y.fetch()[3], 9);
  cublasSscal(4, 0.5f, x.device, 1);
  IS(x.fetch()[2], 1.5);
  cublasSgemv('T', 2, 2, 1.0f, a.device, 2, x.device, 1, 0.0f, y.device, 1);
  IS(y.fetch()[1], 3 * 0.5 + 4 * 1.0);
  Vector<float> b({1, 0, 0, 1}), c({1, 1, 1, 1});
  cublasSgemm('n', 'N', 2, 2, 2, 2.0f, a.device, 2, b.device, 2, 1.0f, c.device, 2);
  IS(c.fetch()[3], 9);
  cublasStrmm('L', 'U', 'N', 'N', 2, 2, 1.0f, a.device, 2, b.device, 2);
  IS(b.fetch()[2], 3);
  IS(b.host[1], 0);
  cublasStrsm('L', 'U', 'N', 'N', 2, 2, 1.0f, a.device, 2, b.device, 2);
  IS(b.fetch()[2], 0);
  float p = 3, q = 4, cosine, sine;
  cublasSrotg(&p, &q, &cosine, &sine);
  IS(std::fabs(p), 5);
  const float h[5] = {-1, 0, 1, 1, 0};  // exchanges both
  cublasSrotm(2, x.device, 1, y.device, 1, h);
  IS(y.fetch()[0], 0.5);
  OK(cublasGetError());
}

void double_numbers() {
  Vector<double> x({1, 2, 3, 4}), a({2, 1, 1, 2});
  IS(cublasDdot(4, x.device, 1, x.device, 1), 30);
  cublasDrot(2, x.device, 1, x.device + 2, 1, 0.0, 1.0);
  IS(x.fetch()[0], 3);
  cublasDsyr('L', 2, 1.0, x.device, 1, a.device, 2);
  IS(a.fetch()[3], 2 + 16);
  OK(cublasGetError());
}

void complex_numbers() {
  Vector<cuComplex> x({{1, 2}, {3, 4}}), y({{1, 0}, {0, 1}}), a({{1, 0}, {0, 0}, {0, 2}, {3, 0}});
  const cuComplex plain = cublasCdotu(2, x.device, 1, y.device, 1), turned = cublasCdotc(2, x.device, 1, y.device, 1);
  IS(plain.x, 1 - 4);
  IS(plain.y, 2 + 3);
  IS(turned.x, 1 + 4);
  IS(turned.y, -2 + 3);
  IS(cublasScnrm2(2, x.device, 1), std::sqrt(30.0));
  IS(cublasScasum(2, x.device, 1), 10);
  IS(cublasIcamax(2, x.device, 1), 2);
  cublasCaxpy(2, make_cuComplex(0, 1), x.device, 1, y.device, 1);
  IS(y.fetch()[0].x, 1 - 2);
  cublasCsscal(2, 2.0f, x.device, 1);
  IS(x.fetch()[1].y, 8);
  cublasChemv('U', 2, make_cuComplex(1, 0), a.device, 2, x.device, 1, make_cuComplex(0, 0), y.device, 1);
  IS(y.fetch()[0].x, 2 - 16);  // 1 (2 + 4i) + 2i (6 + 8i)
  cublasCherk('U', 'N', 2, 1, 1.0f, x.device, 2, 0.0f, a.device, 2);
  IS(a.fetch()[0].x, 4 + 16);
  cuComplex p{3, 0}, sine;
  float cosine;
  cublasCrotg(&p, make_cuComplex(0, 4), &cosine, &sine);
  IS(std::hypot(p.x, p.y), 5);

  Vector<cuDoubleComplex> z({{1, 2}, {3, 4}}), w({{1, 0}, {0, 1}});
  const cuDoubleComplex product = cublasZdotc(2, z.device, 1, w.device, 1);
  IS(product.x, 1 + 4);
  IS(product.y, -2 + 3);
  cublasZscal(2, make_cuDoubleComplex(0, 1), z.device, 1);
  IS(z.fetch()[0].x, -2);
  cublasZgemm('N', 'C', 1, 1, 2, make_cuDoubleComplex(1, 0), w.device, 1, w.device, 1, make_cuDoubleComplex(0, 0),
              z.device, 1);
  IS(z.fetch()[0].x, 2);
  OK(cublasGetError());
}

void errors() {
  float* const none = nullptr;
  cublasSgemm('X', 'N', 1, 1, 1, 1.0f, none, 1, none, 1, 0.0f, none, 1);
  IS(cublasGetError(), CUBLAS_STATUS_INVALID_VALUE);
  OK(cublasGetError());
}

}  // namespace

int main() {
  const bool under_heddle = std::getenv("HEDDLE_JOB") != nullptr;  // NVIDIA's library takes more
  float answer = cublasSasum(0, nullptr, 1);
  IS(answer, 0);
  if (under_heddle) IS(cublasGetError(), CUBLAS_STATUS_NOT_INITIALIZED);
  OK(cublasInit());
  real_numbers();
  double_numbers();
  complex_numbers();
  if (under_heddle) errors();
  OK(cublasShutdown());
  std::printf("PASS\n");
  return 0;
}
