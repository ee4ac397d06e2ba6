// Linked with the driver's library. Without an argument it does not use it, and prints PASS; "probe": what becomes of a
// library and functions that are only looked for; "place": of NVIDIA's own library, by the path given.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <string>

__global__ void store(int* to) {
  *to = 42;
}

static bool computes() {
  int *memory, value = 0;
  if (cudaMalloc(&memory, sizeof value) != cudaSuccess) return false;
  store<<<1, 1>>>(memory);
  return cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost) == cudaSuccess && value == 42;
}

// The library that is opened so serves what heddle's does.
static bool serves(const char* path) {
  void* const library = dlopen(path, RTLD_NOW);
  const auto init = library ? reinterpret_cast<CUresult (*)(unsigned)>(dlsym(library, "cuInit")) : nullptr;
  const auto count = library ? reinterpret_cast<CUresult (*)(int*)>(dlsym(library, "cuDeviceGetCount")) : nullptr;
  int devices = 0;
  return init && count && init(0) == CUDA_SUCCESS && count(&devices) == CUDA_SUCCESS && devices > 0;
}

static bool probe() {
  for (const char* name : {"libcuda.so.1", "libcuda.so"}) {
    void* const library = dlopen(name, RTLD_NOW);
    if (!library || !dlsym(library, "cuInit") || !dlsym(library, "cuMemAlloc_v2")) return false;
  }
  void *function = nullptr, *other = &function;
  cudaDriverEntryPointQueryResult status, missing;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, 0, &status) != cudaSuccess ||
      cudaGetDriverEntryPointByVersion("cuNothing", &other, 12000, 0, &missing) != cudaSuccess)
    return false;
  CUdriverProcAddressQueryResult found;
  void* by_driver = nullptr;
  if (cuGetProcAddress("cuMemAlloc", &by_driver, 12000, 0, &found) != CUDA_SUCCESS || !by_driver) return false;
  return function && !other && status == cudaDriverEntryPointSuccess && missing == cudaDriverEntryPointSymbolNotFound;
}

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  bool right = what != "probe" || probe();
  if (what == "place") right = serves(argv[2]);
  right = right && computes();
  std::puts(right ? "PASS" : "FAIL");
}
