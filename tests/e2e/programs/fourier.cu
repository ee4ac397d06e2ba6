// cuFFT: transforms of every type, of one to three dimensions, batches, strides, in place, captured in a graph, each
// against the sum that defines it, on the host. Prints a line for each group, its name and a digest of what the library
// answered, so that two runs on one GPU can be compared; then PASS. With the argument `bad` it names memory that is not
// its own, and tells what comes of it.

#include <cufft.h>
#include <cufftXt.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <vector>

namespace {

void expect(long got, long expected, const char* what, int line) {
  if (got == expected) return;
  std::printf("FAIL: %s (line %d): %ld, expected %ld\n", what, line, got, expected);
  std::exit(1);
}
#define OK(call) expect(static_cast<long>(call), 0, #call, __LINE__)
#define IS(call, expected) expect(static_cast<long>(call), static_cast<long>(expected), #call, __LINE__)

uint64_t digest;
void take(const void* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) digest = (digest ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211ull;
}

using Complex = std::complex<double>;

double number() {
  static uint64_t state = 1;
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return static_cast<double>(static_cast<int64_t>(state >> 11)) * 0x1p-52 - 1;
}

// Real numbers of one precision on both sides; complex ones are two each.
template <class Real>
struct Array {
  explicit Array(size_t count) : host(count) {
    for (Real& each : host) each = static_cast<Real>(number());
    OK(cudaMalloc(&device, count * sizeof(Real)));
    send();
  }
  ~Array() { cudaFree(device); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  void send() { OK(cudaMemcpy(device, host.data(), host.size() * sizeof(Real), cudaMemcpyHostToDevice)); }
  std::vector<Real> fetch() const {
    std::vector<Real> back(host.size());
    OK(cudaMemcpy(back.data(), device, back.size() * sizeof(Real), cudaMemcpyDeviceToHost));
    take(back.data(), back.size() * sizeof(Real));
    return back;
  }
  std::vector<Real> host;
  Real* device = nullptr;
};

template <class Real>
struct Types;
template <>
struct Types<float> {
  using Pair = cufftComplex;
  static constexpr cufftType c2c = CUFFT_C2C, r2c = CUFFT_R2C, c2r = CUFFT_C2R;
  static constexpr double tolerance = 2e-4;
  static cufftResult both(cufftHandle plan, void* in, void* out, int direction) {
    return cufftExecC2C(plan, static_cast<Pair*>(in), static_cast<Pair*>(out), direction);
  }
  static cufftResult from_real(cufftHandle plan, void* in, void* out) {
    return cufftExecR2C(plan, static_cast<float*>(in), static_cast<Pair*>(out));
  }
  static cufftResult to_real(cufftHandle plan, void* in, void* out) {
    return cufftExecC2R(plan, static_cast<Pair*>(in), static_cast<float*>(out));
  }
};
template <>
struct Types<double> {
  using Pair = cufftDoubleComplex;
  static constexpr cufftType c2c = CUFFT_Z2Z, r2c = CUFFT_D2Z, c2r = CUFFT_Z2D;
  static constexpr double tolerance = 1e-10;
  static cufftResult both(cufftHandle plan, void* in, void* out, int direction) {
    return cufftExecZ2Z(plan, static_cast<Pair*>(in), static_cast<Pair*>(out), direction);
  }
  static cufftResult from_real(cufftHandle plan, void* in, void* out) {
    return cufftExecD2Z(plan, static_cast<double*>(in), static_cast<Pair*>(out));
  }
  static cufftResult to_real(cufftHandle plan, void* in, void* out) {
    return cufftExecZ2D(plan, static_cast<Pair*>(in), static_cast<double*>(out));
  }
};

struct Size {
  int n[3];
  int all() const { return n[0] * n[1] * n[2]; }
};

// By definition, one dimension after the other.
std::vector<Complex> transformed(std::vector<Complex> of, const Size& size, int direction) {
  for (int dimension = 0; dimension < 3; ++dimension) {
    const int n = size.n[dimension], step = dimension == 2 ? 1 : dimension == 1 ? size.n[2] : size.n[1] * size.n[2];
    std::vector<Complex> to(of.size());
    for (int first = 0; first < size.all(); ++first) {
      const int at = first / step % n;
      for (int i = 0; i < n; ++i)
        to[first] += of[first + (i - at) * step] *
                     std::polar(1.0, direction * 2 * std::numbers::pi * (static_cast<int64_t>(at) * i % n) / n);
    }
    of = to;
  }
  return of;
}

template <class Real>
void near(Real got, double expected, const Size& size, int line) {
  if (std::fabs(got - expected) <= Types<Real>::tolerance * std::sqrt(size.all()) * (1 + std::fabs(expected))) return;
  std::printf("FAIL: line %d, %d x %d x %d: %g, expected %g\n", line, size.n[0], size.n[1], size.n[2],
              static_cast<double>(got), expected);
  std::exit(1);
}

template <class Real>
std::vector<Complex> pairs(const std::vector<Real>& from, size_t first, const Size& size) {
  std::vector<Complex> to;
  for (int i = 0; i < size.all(); ++i) to.emplace_back(from[2 * (first + i)], from[2 * (first + i) + 1]);
  return to;
}

cufftHandle plan_of(int rank, const Size& size, cufftType type, int batch) {
  cufftHandle plan;
  const int* const n = size.n + 3 - rank;
  if (rank == 1) OK(cufftPlan1d(&plan, n[0], type, batch));
  if (rank == 2 && batch == 1) OK(cufftPlan2d(&plan, n[0], n[1], type));
  if (rank == 3 && batch == 1) OK(cufftPlan3d(&plan, n[0], n[1], n[2], type));
  if (rank > 1 && batch > 1)
    OK(cufftPlanMany(&plan, rank, const_cast<int*>(n), nullptr, 1, 0, nullptr, 1, 0, type, batch));
  return plan;
}

template <class Real>
void complex_numbers(int rank, const Size& size, int batch) {
  Array<Real> in(2 * size.all() * batch), out(2 * size.all() * batch);
  const cufftHandle plan = plan_of(rank, size, Types<Real>::c2c, batch);
  for (const int direction : {CUFFT_FORWARD, CUFFT_INVERSE}) {
    OK(Types<Real>::both(plan, in.device, out.device, direction));
    const auto got = out.fetch();
    for (int b = 0; b < batch; ++b) {
      const auto wanted = transformed(pairs(in.host, b * size.all(), size), size, direction);
      for (int i = 0; i < size.all(); ++i) {
        near(got[2 * (b * size.all() + i)], wanted[i].real(), size, __LINE__);
        near(got[2 * (b * size.all() + i) + 1], wanted[i].imag(), size, __LINE__);
      }
    }
    // In place.
    OK(Types<Real>::both(plan, in.device, in.device, direction));
    const auto again = in.fetch();
    for (size_t i = 0; i < got.size(); ++i) near(again[i], got[i], size, __LINE__);
    in.send();
  }
  OK(cufftDestroy(plan));
}

// There, out of place and in place, and back.
template <class Real>
void real_numbers(int rank, const Size& size, int batch) {
  const int half = size.n[2] / 2 + 1, rows = size.n[0] * size.n[1], row = 2 * half;
  Array<Real> in(size.all() * batch), out(row * rows * batch), padded(row * rows * batch), back(size.all() * batch);
  const cufftHandle there = plan_of(rank, size, Types<Real>::r2c, batch);
  const cufftHandle home = plan_of(rank, size, Types<Real>::c2r, batch);
  OK(Types<Real>::from_real(there, in.device, out.device));
  const auto got = out.fetch();
  for (int b = 0; b < batch; ++b) {
    std::vector<Complex> numbers(in.host.begin() + b * size.all(), in.host.begin() + (b + 1) * size.all());
    const auto wanted = transformed(numbers, size, CUFFT_FORWARD);
    for (int r = 0; r < rows; ++r) {
      for (int k = 0; k < half; ++k) {
        const size_t at = 2 * ((b * rows + r) * half + k);
        near(got[at], wanted[r * size.n[2] + k].real(), size, __LINE__);
        near(got[at + 1], wanted[r * size.n[2] + k].imag(), size, __LINE__);
      }
    }
  }
  for (int r = 0; r < rows * batch; ++r)
    for (int k = 0; k < size.n[2]; ++k) padded.host[r * row + k] = in.host[r * size.n[2] + k];
  padded.send();
  OK(Types<Real>::from_real(there, padded.device, padded.device));
  const auto in_place = padded.fetch();
  for (size_t i = 0; i < got.size(); ++i) near(in_place[i], got[i], size, __LINE__);
  OK(Types<Real>::to_real(home, out.device, back.device));
  const auto returned = back.fetch();
  for (size_t i = 0; i < returned.size(); ++i)
    near(static_cast<Real>(returned[i] / size.all()), in.host[i], size, __LINE__);
  OK(cufftDestroy(there));
  OK(cufftDestroy(home));
}

template <class Real>
void every_size() {
  for (const int n : {1, 2, 8, 64, 1024, 3, 7, 30, 100, 211}) {
    complex_numbers<Real>(1, {{1, 1, n}}, 1);
    real_numbers<Real>(1, {{1, 1, n}}, 1);
  }
  complex_numbers<Real>(1, {{1, 1, 24}}, 5);
  real_numbers<Real>(1, {{1, 1, 16}}, 5);
  complex_numbers<Real>(2, {{1, 12, 16}}, 1);
  real_numbers<Real>(2, {{1, 12, 16}}, 1);
  complex_numbers<Real>(2, {{1, 6, 5}}, 3);
  real_numbers<Real>(2, {{1, 6, 5}}, 3);
  complex_numbers<Real>(3, {{4, 6, 8}}, 1);
  real_numbers<Real>(3, {{4, 6, 8}}, 1);
}

// Every second number of every second row, in the two ways that sizes are given in.
void strides() {
  const Size size{{1, 6, 8}};
  Array<float> in(2 * 12 * 16 * 2), out(2 * size.all() * 2);
  int n[] = {6, 8}, embed[] = {12, 16}, tight[] = {6, 8};
  long long n_64[] = {6, 8}, embed_64[] = {12, 16}, tight_64[] = {6, 8};
  cufftHandle plan, plan_64;
  size_t work = 0;
  OK(cufftPlanMany(&plan, 2, n, embed, 2, 12 * 16, tight, 1, size.all(), CUFFT_C2C, 2));
  OK(cufftCreate(&plan_64));
  OK(cufftMakePlanMany64(plan_64, 2, n_64, embed_64, 2, 12 * 16, tight_64, 1, size.all(), CUFFT_C2C, 2, &work));
  auto* const from = reinterpret_cast<cufftComplex*>(in.device);
  auto* const to = reinterpret_cast<cufftComplex*>(out.device);
  for (const cufftHandle each : {plan, plan_64}) {
    OK(cufftExecC2C(each, from, to, CUFFT_FORWARD));
    const auto got = out.fetch();
    for (int b = 0; b < 2; ++b) {
      std::vector<Complex> numbers;
      for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 8; ++j) {
          const int at = 2 * (b * 12 * 16 + (i * 16 + j) * 2);
          numbers.emplace_back(in.host[at], in.host[at + 1]);
        }
      const auto wanted = transformed(numbers, size, CUFFT_FORWARD);
      for (int i = 0; i < size.all(); ++i) near(got[2 * (b * size.all() + i)], wanted[i].real(), size, __LINE__);
    }
    OK(cufftDestroy(each));
  }
}

// A plan and its calls by the names of the types.
void named_types() {
  const Size size{{1, 1, 24}};
  Array<double> in(24), out(26), back(24);
  long long n[] = {24};
  size_t work = 0;
  cufftHandle there, home;
  OK(cufftCreate(&there));
  OK(cufftCreate(&home));
  OK(cufftXtMakePlanMany(there, 1, n, nullptr, 1, 24, CUDA_R_64F, nullptr, 1, 13, CUDA_C_64F, 1, &work, CUDA_C_64F));
  OK(cufftXtMakePlanMany(home, 1, n, nullptr, 1, 13, CUDA_C_64F, nullptr, 1, 24, CUDA_R_64F, 1, &work, CUDA_C_64F));
  OK(cufftXtExec(there, in.device, out.device, CUFFT_FORWARD));
  const auto got = out.fetch();
  const auto wanted = transformed({in.host.begin(), in.host.end()}, size, CUFFT_FORWARD);
  for (int k = 0; k < 13; ++k) near(got[2 * k], wanted[k].real(), size, __LINE__);
  OK(cufftXtExec(home, out.device, back.device, CUFFT_INVERSE));
  const auto returned = back.fetch();
  for (int i = 0; i < 24; ++i) near(returned[i] / 24, in.host[i], size, __LINE__);
  OK(cufftDestroy(there));
  OK(cufftDestroy(home));
}

// Captured: each launch transforms what lies there then. The work area is the program's.
void graphs() {
  const Size size{{1, 1, 64}};
  Array<float> in(128), out(128);
  cufftHandle plan;
  size_t work = 0;
  void* area = nullptr;
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cufftCreate(&plan));
  OK(cufftSetAutoAllocation(plan, 0));
  OK(cufftMakePlan1d(plan, 64, CUFFT_C2C, 1, &work));
  OK(cudaMalloc(&area, work + 256));
  OK(cufftSetWorkArea(plan, area));
  OK(cufftSetStream(plan, stream));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cufftExecC2C(plan, reinterpret_cast<cufftComplex*>(in.device), reinterpret_cast<cufftComplex*>(out.device),
                  CUFFT_FORWARD));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) {
    for (float& each : in.host) each = static_cast<float>(number());
    in.send();
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    const auto got = out.fetch();
    const auto wanted = transformed(pairs(in.host, 0, size), size, CUFFT_FORWARD);
    for (int k = 0; k < 64; ++k) near(got[2 * k], wanted[k].real(), size, __LINE__);
  }
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cufftDestroy(plan));
  OK(cudaStreamDestroy(stream));
  OK(cudaFree(area));
}

void refusals() {
  cufftHandle plan;
  int version = 0;
  size_t bytes = 0;
  IS(cufftPlan1d(&plan, 0, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);
  IS(cufftPlan1d(&plan, 8, static_cast<cufftType>(7), 1), CUFFT_INVALID_TYPE);
  IS(cufftExecC2C(12345, nullptr, nullptr, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
  OK(cufftPlan1d(&plan, 8, CUFFT_C2C, 1));
  OK(cufftGetSize(plan, &bytes));
  OK(cufftDestroy(plan));
  IS(cufftDestroy(plan), CUFFT_INVALID_PLAN);
  OK(cufftEstimate2d(16, 16, CUFFT_C2C, &bytes));
  OK(cufftGetVersion(&version));
  IS(version / 1000, 12);
}

int bad_address() {
  Array<float> in(128);
  cufftHandle plan;
  OK(cufftPlan1d(&plan, 64, CUFFT_C2C, 1));
  auto* const from = reinterpret_cast<cufftComplex*>(in.device);
  OK(cufftExecC2C(plan, from, from + (64 << 20), CUFFT_FORWARD));
  std::printf("bad address: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}

template <class Body>
void group(const char* name, Body body) {
  digest = 14695981039346656037ull;
  body();
  OK(cudaDeviceSynchronize());
  std::printf("%-22s %016llx\n", name, static_cast<unsigned long long>(digest));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "bad") == 0) return bad_address();
  group("single precision", every_size<float>);
  group("double precision", every_size<double>);
  group("strides", strides);
  group("named types", named_types);
  group("graphs", graphs);
  refusals();
  std::printf("PASS\n");
  return 0;
}
