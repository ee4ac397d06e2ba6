// The runtime and the driver API in one program: what newer CCCL does (functions of the driver found through the
// runtime), and what libraries do that were given the other's handles.

#include <cuda_runtime.h>

#include <cstring>
#include <thread>

#include "driver_check.h"

#define RUNTIME(call) EXPECT((call) == cudaSuccess)

__global__ void scale(float* values, float by, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= by;
}
__device__ int marker = 7;

namespace {

int last = 0;  // device: another one where there are several

template <class Function>
Function* entry(const char* name, unsigned version = 12000) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status;
  RUNTIME(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &status));
  EXPECT(status == cudaDriverEntryPointSuccess && function);
  return reinterpret_cast<Function*>(function);
}

// By functions that are found through the runtime, without cuInit.
void finds_functions() {
  CUcontext before = nullptr, context = nullptr;
  auto* const get_current = entry<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent");
  DRIVER(get_current(&before));
  EXPECT(before == nullptr);
  RUNTIME(cudaFree(nullptr));
  DRIVER(get_current(&context));
  EXPECT(context != nullptr);
  CUcontext primary = nullptr;
  DRIVER(entry<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&primary, 0));
  EXPECT(primary == context);
  // As CCCL makes a device current for a while.
  int device = -1;
  CUcontext other = nullptr;
  DRIVER(cuDevicePrimaryCtxRetain(&other, last));
  DRIVER(entry<decltype(cuCtxPushCurrent)>("cuCtxPushCurrent")(other));
  RUNTIME(cudaGetDevice(&device));
  EXPECT(device == last);
  DRIVER(entry<decltype(cuCtxPopCurrent)>("cuCtxPopCurrent")(&other));
  RUNTIME(cudaGetDevice(&device));
  EXPECT(device == 0);
  RUNTIME(cudaSetDevice(last));
  DRIVER(get_current(&context));
  EXPECT(context == other);
  RUNTIME(cudaSetDevice(0));
  DRIVER(cuDevicePrimaryCtxRelease(last));
  DRIVER(cuDevicePrimaryCtxRelease(0));
}

void honours_versions() {
  void *first = nullptr, *second = nullptr, *plain = nullptr, *own = nullptr;
  CUdriverProcAddressQueryResult status;
  DRIVER(cuGetProcAddress("cuStreamGetCaptureInfo", &first, 11030, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  DRIVER(cuGetProcAddress("cuStreamGetCaptureInfo", &second, 12030, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  EXPECT(first && second && first != second && status == CU_GET_PROC_ADDRESS_SUCCESS);
  DRIVER(cuGetProcAddress("cuCtxGetId", &plain, 11000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  EXPECT(!plain && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  DRIVER(cuGetProcAddress("cuNothing", &plain, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  EXPECT(!plain && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  DRIVER(cuGetProcAddress("cuGetProcAddress", &own, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  using Find = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  DRIVER(reinterpret_cast<Find>(own)("cuGetProcAddress", &plain, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  EXPECT(plain == own);
  DRIVER(cuGetProcAddress("cuLaunchKernel", &first, 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status));
  DRIVER(cuGetProcAddress("cuLaunchKernel", &second, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
  EXPECT(first != second);
  EXPECT_CODE(cuGetProcAddress("cuInit", &plain, 12000, 99, &status), CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuGetProcAddress("cuGraphInstantiate", &first, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  DRIVER(cuGetProcAddress("cuGraphInstantiateWithFlags", &second, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  EXPECT(first && second);
}

// NVIDIA's driver has some.
void refuses_private_tables() {
  if (!std::getenv("HEDDLE_JOB")) return;
  const void* table = nullptr;
  CUuuid id{};
  EXPECT_CODE(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
}

// Handles and pointers of one are the other's.
void shares_handles() {
  constexpr int kCount = 1000;
  float* values = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  RUNTIME(cudaMalloc(&values, kCount * sizeof(float)));
  RUNTIME(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  RUNTIME(cudaEventCreate(&event));
  const auto address = reinterpret_cast<CUdeviceptr>(values);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  DRIVER(cuMemGetAddressRange(&base, &bytes, address + 100));
  EXPECT(base == address && bytes == kCount * sizeof(float));
  const float one = 1;
  unsigned word;
  std::memcpy(&word, &one, sizeof word);
  DRIVER(cuMemsetD32Async(address, word, kCount, stream));
  scale<<<4, 256, 0, stream>>>(values, 2, kCount);
  DRIVER(cuEventRecord(event, stream));
  RUNTIME(cudaEventSynchronize(event));

  CUcontext context = nullptr, current = nullptr;
  DRIVER(cuStreamGetCtx(stream, &context));
  DRIVER(cuCtxGetCurrent(&current));
  EXPECT(context == current);
  unsigned long long id = 0, same = 0;
  DRIVER(cuStreamGetId(stream, &id));
  RUNTIME(cudaStreamGetId(stream, &same));
  EXPECT(id == same);

  cudaFunction_t function = nullptr;
  RUNTIME(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&scale)));
  float by = 3;
  int count = kCount;
  void* arguments[] = {&values, &by, &count};
  DRIVER(cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
  CUmodule module = nullptr;
  DRIVER(cuFuncGetModule(&module, function));
  CUdeviceptr variable = 0;
  void* symbol = nullptr;
  DRIVER(cuModuleGetGlobal(&variable, &bytes, module, "marker"));
  RUNTIME(cudaGetSymbolAddress(&symbol, marker));
  EXPECT(variable == reinterpret_cast<CUdeviceptr>(symbol) && bytes == sizeof marker);

  float result[kCount];
  RUNTIME(cudaMemcpyAsync(result, values, sizeof result, cudaMemcpyDeviceToHost, stream));
  DRIVER(cuStreamSynchronize(stream));
  for (const float value : result) EXPECT(value == 6);
  DRIVER(cuStreamDestroy(stream));
  DRIVER(cuEventDestroy(event));
  DRIVER(cuMemFree(address));
}

// The runtime's own way to modules that are loaded at run time.
void loads_libraries() {
  const char* text =
      ".version 8.0\n.target sm_75\n.address_size 64\n.global .align 4 .u32 kept;\n"
      ".visible .entry store(.param .u64 to)\n{\n.reg .b64 %rd<3>;\n.reg .b32 %r<2>;\nld.param.u64 %rd1, [to];\n"
      "cvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r1, 77;\nst.global.u32 [%rd2], %r1;\nst.global.u32 [kept], %r1;\n"
      "ret;\n}\n";
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  void *memory = nullptr, *kept = nullptr;
  size_t bytes = 0;
  int values[2] = {};
  RUNTIME(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
  RUNTIME(cudaLibraryGetKernel(&kernel, library, "store"));
  RUNTIME(cudaLibraryGetGlobal(&kept, &bytes, library, "kept"));
  RUNTIME(cudaMalloc(&memory, sizeof(int)));
  void* arguments[] = {&memory};
  RUNTIME(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), arguments, 0, nullptr));
  RUNTIME(cudaMemcpy(&values[0], memory, sizeof(int), cudaMemcpyDeviceToHost));
  RUNTIME(cudaMemcpy(&values[1], kept, sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(values[0] == 77 && values[1] == 77 && bytes == sizeof(int));
  RUNTIME(cudaFree(memory));
  RUNTIME(cudaLibraryUnload(library));
}

// Neither changes the other's last error.
void keeps_errors_apart() {
  CUdeviceptr memory = 0;
  EXPECT_CODE(cuMemAlloc(&memory, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemFree(4096), CUDA_ERROR_INVALID_VALUE);
  RUNTIME(cudaPeekAtLastError());
  EXPECT(cudaMemcpy(nullptr, nullptr, 1, cudaMemcpyDefault) == cudaErrorInvalidValue);
  DRIVER(cuCtxSynchronize());
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
}

// A thread that has used neither has no context; the runtime gives it one.
void gives_threads_contexts() {
  std::thread([] {
    CUcontext context = nullptr;
    CUdeviceptr memory = 0;
    DRIVER(cuCtxGetCurrent(&context));
    EXPECT(context == nullptr);
    EXPECT_CODE(cuMemAlloc(&memory, 4), CUDA_ERROR_INVALID_CONTEXT);
    RUNTIME(cudaSetDevice(last));
    CUdevice device = -1;
    DRIVER(cuCtxGetDevice(&device));
    EXPECT(device == last);
    DRIVER(cuMemAlloc(&memory, 4));
    DRIVER(cuMemFree(memory));
  }).join();
}

}  // namespace

int main(int count, char** arguments) {
  int devices = 0;
  RUNTIME(cudaGetDeviceCount(&devices));
  last = devices > 1 ? 1 : 0;
  finds_functions();
  honours_versions();
  if (asks_for_answers(count, arguments)) refuses_private_tables();
  shares_handles();
  loads_libraries();
  keeps_errors_apart();
  gives_threads_contexts();
  std::puts("PASS");
}
