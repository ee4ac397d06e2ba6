// A short or a long program that tells when it came to where: lines of "span NAME NANOSECONDS", CLOCK_REALTIME, so that
// whoever started it can set them against its own clock. Usage: spans short|long

#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

namespace {

constexpr int kKernels = 64;  // in the module; one of them is called

template <int Number>
__global__ void step(float* at, int count, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float value = at[i];
  for (int round = 0; round < rounds; ++round) value = value * 0.5f + Number;
  at[i] = value;
}

// Makes the compiler keep kKernels kernels.
template <int Number>
void launch(int wanted, float* at, int count, int rounds) {
  if (wanted == Number) step<Number><<<count / 256, 256>>>(at, count, rounds);
  if constexpr (Number + 1 < kKernels) launch<Number + 1>(wanted, at, count, rounds);
}

void span(const char* name) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::printf("span %s %lld\n", name, static_cast<long long>(now.tv_sec) * 1000000000ll + now.tv_nsec);
}

int failed(const char* what, cudaError_t error) {
  std::printf("FAIL %s: %s\n", what, cudaGetErrorString(error));
  return 2;
}

}  // namespace

int main(int count, char** words) {
  span("main");
  const bool is_long = count > 1 && !std::strcmp(words[1], "long");
  constexpr int kCount = 4 << 20;
  const int launches = is_long ? 400 : 4, rounds = is_long ? 4000 : 100;
  int devices = 0;
  if (cudaError_t error = cudaGetDeviceCount(&devices)) return failed("cudaGetDeviceCount", error);
  span("count");
  if (cudaError_t error = cudaFree(nullptr)) return failed("cudaFree", error);
  span("context");
  float* at = nullptr;
  if (cudaError_t error = cudaMalloc(&at, kCount * sizeof *at)) return failed("cudaMalloc", error);
  span("memory");
  std::vector<float> host(kCount, 1.0f);
  span("host");
  if (cudaError_t error = cudaMemcpy(at, host.data(), kCount * sizeof *at, cudaMemcpyHostToDevice))
    return failed("copy in", error);
  span("copy-in");
  launch<0>(7, at, kCount, rounds);
  if (cudaError_t error = cudaDeviceSynchronize()) return failed("the first launch", error);
  span("first-launch");
  for (int i = 1; i < launches; ++i) launch<0>(7, at, kCount, rounds);
  if (cudaError_t error = cudaDeviceSynchronize()) return failed("launches", error);
  span("launches");
  if (cudaError_t error = cudaMemcpy(host.data(), at, kCount * sizeof *at, cudaMemcpyDeviceToHost))
    return failed("copy out", error);
  span("copy-out");
  if (cudaError_t error = cudaFree(at)) return failed("cudaFree", error);
  span("free");
  for (const float value : host) {
    if (value < 13.9f || value > 14.1f) {  // the limit of x/2 + 7
      std::printf("FAIL wrong: %f\n", value);
      return 2;
    }
  }
  span("check");
  return 0;
}
