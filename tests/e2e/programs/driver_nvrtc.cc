// A kernel that is compiled while the program runs (NVRTC), and loaded as PTX.

#include <nvrtc.h>

#include <vector>

#include "driver_check.h"

namespace {

constexpr const char* kSource = R"(
template <class T>
__device__ T sum_of(T a, T b) {
  return a + b;
}
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) c[i] = sum_of(a[i], b[i]);
}
)";

std::string compiled() {
  nvrtcProgram program;
  EXPECT(nvrtcCreateProgram(&program, kSource, "vector_add.cu", 0, nullptr, nullptr) == NVRTC_SUCCESS);
  const char* options[] = {"--gpu-architecture=compute_75"};
  EXPECT(nvrtcCompileProgram(program, 1, options) == NVRTC_SUCCESS);
  size_t bytes = 0;
  EXPECT(nvrtcGetPTXSize(program, &bytes) == NVRTC_SUCCESS);
  std::string ptx(bytes, '\0');
  EXPECT(nvrtcGetPTX(program, ptx.data()) == NVRTC_SUCCESS);
  nvrtcDestroyProgram(&program);
  return ptx;
}

}  // namespace

int main() {
  constexpr int kCount = 5000;
  DRIVER(cuInit(0));
  CUcontext context;
  CUmodule module;
  CUfunction function;
  DRIVER(cuCtxCreate(&context, nullptr, 0, 0));
  DRIVER(cuModuleLoadData(&module, compiled().c_str()));
  DRIVER(cuModuleGetFunction(&function, module, "vector_add"));
  std::vector<float> values(kCount), sums(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = i;
  CUdeviceptr in, out;
  DRIVER(cuMemAlloc(&in, kCount * 4));
  DRIVER(cuMemAlloc(&out, kCount * 4));
  DRIVER(cuMemcpyHtoD(in, values.data(), kCount * 4));
  int count = kCount;
  void* arguments[] = {&in, &in, &out, &count};
  DRIVER(cuLaunchKernel(function, (kCount + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
  DRIVER(cuMemcpyDtoH(sums.data(), out, kCount * 4));
  for (int i = 0; i < kCount; ++i) EXPECT(sums[i] == 2 * values[i]);
  DRIVER(cuCtxDestroy(context));
  std::puts("PASS");
}
