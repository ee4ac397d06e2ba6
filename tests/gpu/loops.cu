// Loops that are bound by one thing each, for comparing one program alone under heddle with the same program natively:
// launches, copies, computing, allocating. Prints the seconds of the loop itself; the caller takes the time of the
// whole process. `leave` takes all of the device's memory but so much, and `fault` writes where nothing is. Usage:
// loops launch COUNT | sync COUNT | copy MIB REPEATS | compute REPEATS | allocate COUNT | leave MIB | fault

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

#define CHECK(call)                                                                          \
  do {                                                                                       \
    if (cudaError_t error = (call); error != cudaSuccess) {                                  \
      std::fprintf(stderr, "loops: %s: %s (%d)\n", #call, cudaGetErrorString(error), error); \
      std::exit(1);                                                                          \
    }                                                                                        \
  } while (false)

__global__ void nothing() {}

__global__ void count(unsigned* at) {
  atomicAdd(at, 1u);
}

// The same dependent chain in every thread, so that the result can be checked.
__global__ void chain(unsigned* out, unsigned rounds) {
  unsigned value = threadIdx.x;
  for (unsigned i = 0; i < rounds; ++i) value = value * 1664525u + 1013904223u;
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int report(const char* what, double seconds, bool right) {
  std::printf("loops: %s: %.6f s: %s\n", what, seconds, right ? "PASS" : "FAIL");
  return right ? 0 : 2;
}

int launch(unsigned times, bool wait_each) {
  unsigned* at = nullptr;
  CHECK(cudaMalloc(&at, sizeof *at));
  CHECK(cudaMemset(at, 0, sizeof *at));
  nothing<<<1, 32>>>();
  CHECK(cudaDeviceSynchronize());
  const double begin = now();
  for (unsigned i = 0; i < times; ++i) {
    nothing<<<1, 32>>>();
    if (wait_each) CHECK(cudaDeviceSynchronize());
  }
  CHECK(cudaDeviceSynchronize());
  const double seconds = now() - begin;
  count<<<1, 32>>>(at);
  unsigned counted = 0;
  CHECK(cudaMemcpy(&counted, at, sizeof counted, cudaMemcpyDeviceToHost));
  return report(wait_each ? "sync" : "launch", seconds, counted == 32);
}

int copy(size_t mib, unsigned times) {
  const size_t words = mib * (1 << 20) / sizeof(unsigned);
  std::vector<unsigned> in(words), out(words);
  for (size_t i = 0; i < words; ++i) in[i] = static_cast<unsigned>(i * 2654435761u);
  unsigned* at = nullptr;
  CHECK(cudaMalloc(&at, words * sizeof *at));
  const double begin = now();
  for (unsigned i = 0; i < times; ++i) {
    CHECK(cudaMemcpy(at, in.data(), words * sizeof *at, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(out.data(), at, words * sizeof *at, cudaMemcpyDeviceToHost));
  }
  return report("copy", now() - begin, std::memcmp(in.data(), out.data(), words * sizeof(unsigned)) == 0);
}

int compute(unsigned times) {
  constexpr unsigned kBlocks = 132 * 8, kThreads = 256, kRounds = 200000;
  unsigned* at = nullptr;
  CHECK(cudaMalloc(&at, kBlocks * kThreads * sizeof *at));
  const double begin = now();
  for (unsigned i = 0; i < times; ++i) chain<<<kBlocks, kThreads>>>(at, kRounds);
  CHECK(cudaDeviceSynchronize());
  const double seconds = now() - begin;
  std::vector<unsigned> out(kBlocks * kThreads);
  CHECK(cudaMemcpy(out.data(), at, out.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  unsigned expected = 7;
  for (unsigned i = 0; i < kRounds; ++i) expected = expected * 1664525u + 1013904223u;
  return report("compute", seconds, out[7] == expected && out[kThreads + 7] == expected);
}

// Each iteration allocates three buffers, works on them, copies a word back, and frees them: all that it has. The first
// iteration is not counted. Prints, too, what a cudaMalloc and a cudaFree took, in microseconds.
int allocate(unsigned times) {
  constexpr size_t kSizes[] = {1 << 20, 4 << 20, 16 << 20};
  double begin = 0, allocating = 0, freeing = 0;
  unsigned wrong = 0;
  for (unsigned i = 0; i <= times; ++i) {
    if (i == 1) begin = now(), allocating = freeing = 0;
    unsigned* at[3] = {};
    const double start = now();
    for (int k = 0; k < 3; ++k) CHECK(cudaMalloc(&at[k], kSizes[k]));
    allocating += now() - start;
    unsigned seen = 0;
    for (unsigned* buffer : at) {
      CHECK(cudaMemsetAsync(buffer, 0, 4096));
      count<<<1, 32>>>(buffer);
    }
    CHECK(cudaMemcpy(&seen, at[i % 3], sizeof seen, cudaMemcpyDeviceToHost));
    wrong += seen != 32;
    const double end = now();
    for (unsigned* buffer : at) CHECK(cudaFree(buffer));
    freeing += now() - end;
  }
  const double seconds = now() - begin;
  std::printf("allocate: %.1f us an iteration, %.2f us a cudaMalloc, %.2f us a cudaFree\n", seconds / times * 1e6,
              allocating / times / 3 * 1e6, freeing / times / 3 * 1e6);
  return report("allocate", seconds, wrong == 0);
}

// Until its end, or the end of its standard input.
int leave(size_t mib) {
  constexpr size_t kPiece = 256;
  size_t free = 0, total = 0;
  void* piece = nullptr;
  CHECK(cudaMemGetInfo(&free, &total));
  while (free >> 20 >= mib + kPiece) {
    CHECK(cudaMalloc(&piece, kPiece << 20));
    CHECK(cudaMemGetInfo(&free, &total));
  }
  std::printf("holding\n");
  std::fflush(stdout);
  char ignored;
  while (::read(STDIN_FILENO, &ignored, 1) > 0) continue;
  return 0;
}

// Right is the error that CUDA has for it.
int fault() {
  count<<<1, 1>>>(reinterpret_cast<unsigned*>(uintptr_t{1} << 44));
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("loops: fault: %s: %s\n", cudaGetErrorString(error), error == cudaErrorIllegalAddress ? "PASS" : "FAIL");
  return error == cudaErrorIllegalAddress ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i) { return i < argc ? static_cast<unsigned>(std::atoi(argv[i])) : 0u; };
  const char* what = argc > 1 ? argv[1] : "";
  if (!std::strcmp(what, "launch") && number(2)) return launch(number(2), false);
  if (!std::strcmp(what, "sync") && number(2)) return launch(number(2), true);
  if (!std::strcmp(what, "copy") && number(2) && number(3)) return copy(number(2), number(3));
  if (!std::strcmp(what, "compute") && number(2)) return compute(number(2));
  if (!std::strcmp(what, "allocate") && number(2)) return allocate(number(2));
  if (!std::strcmp(what, "leave") && number(2)) return leave(number(2));
  if (!std::strcmp(what, "fault")) return fault();
  std::fprintf(stderr,
               "usage: loops launch COUNT | sync COUNT | copy MIB REPEATS | compute REPEATS | allocate COUNT | leave "
               "MIB | fault\n");
  return 64;
}
