// What the driver API answers before it is initialized and without a context; contexts and the threads' stacks of them;
// devices and errors. "driver_contexts [answers]".

#include <cstring>
#include <thread>
#include <vector>

#include "driver_check.h"

namespace {

bool answers = false;
int last = 0;  // device: another one where there are several

void begins() {
  int count = 0, version = 0;
  const char* text = nullptr;
  DRIVER(cuDriverGetVersion(&version));
  EXPECT(version >= 12000);
  DRIVER(cuGetErrorName(CUDA_ERROR_INVALID_CONTEXT, &text));
  EXPECT(std::strcmp(text, "CUDA_ERROR_INVALID_CONTEXT") == 0);
  DRIVER(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT(std::strcmp(text, "out of memory") == 0);
  EXPECT_CODE(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT(text == nullptr);
  EXPECT_CODE(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_CODE(cuInit(1), CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuInit(0));
  DRIVER(cuInit(0));
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  DRIVER(cuCtxGetCurrent(&context));
  EXPECT(context == nullptr);
  EXPECT_CODE(cuMemAlloc(&memory, 4), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CODE(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CODE(cuCtxPopCurrent(&context), CUDA_ERROR_INVALID_CONTEXT);
}

void describes_devices() {
  int count = 0;
  DRIVER(cuDeviceGetCount(&count));
  EXPECT(count >= 1);
  last = count > 1 ? 1 : 0;
  CUdevice device;
  EXPECT_CODE(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  CUuuid uuids[2];
  for (int i = 0; i <= last; ++i) {
    char name[64], bus[32];
    size_t bytes = 0;
    int sms = 0, major = 0, minor = 0, again = -1;
    DRIVER(cuDeviceGet(&device, i));
    DRIVER(cuDeviceGetName(name, sizeof name, device));
    DRIVER(cuDeviceTotalMem(&bytes, device));
    DRIVER(cuDeviceGetUuid(&uuids[i], device));
    DRIVER(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    DRIVER(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    DRIVER(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    DRIVER(cuDeviceGetPCIBusId(bus, sizeof bus, device));
    DRIVER(cuDeviceGetByPCIBusId(&again, bus));
    EXPECT(*name && bytes > 0 && sms > 0 && major > 0 && minor >= 0 && again == device);
    int vmm = 1;
    DRIVER(cuDeviceGetAttribute(&vmm, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device));
    EXPECT(vmm == 0 || !answers);
  }
  EXPECT(last == 0 || std::memcmp(&uuids[0], &uuids[1], sizeof uuids[0]) != 0);
  int value = 0;
  EXPECT_CODE(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(100'000), 0), CUDA_ERROR_INVALID_VALUE);
}

CUcontext current() {
  CUcontext context = nullptr;
  DRIVER(cuCtxGetCurrent(&context));
  return context;
}

CUdevice current_device() {
  CUdevice device = -1;
  DRIVER(cuCtxGetDevice(&device));
  return device;
}

void stacks_contexts() {
  CUcontext primary = nullptr, other = nullptr, popped = nullptr, created = nullptr;
  unsigned flags = 0;
  int active = 1;
  DRIVER(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT(active == 0);
  EXPECT_CODE(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
  DRIVER(cuDevicePrimaryCtxRetain(&primary, 0));
  DRIVER(cuDevicePrimaryCtxRetain(&other, last));
  DRIVER(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT(active == 1 && current() == nullptr && (primary == other) == (last == 0));

  DRIVER(cuCtxPushCurrent(primary));
  DRIVER(cuCtxPushCurrent(other));
  EXPECT(current() == other && current_device() == last);
  DRIVER(cuCtxPopCurrent(&popped));
  EXPECT(popped == other && current() == primary && current_device() == 0);
  DRIVER(cuCtxSetCurrent(other));
  EXPECT(current() == other && current_device() == last);
  DRIVER(cuCtxSetCurrent(nullptr));
  EXPECT(current() == nullptr);

  DRIVER(cuCtxSetCurrent(primary));
  DRIVER(cuCtxCreate(&created, nullptr, CU_CTX_SCHED_BLOCKING_SYNC, last));
  EXPECT(current() == created && current_device() == last);
  unsigned long long ids[2] = {};
  DRIVER(cuCtxGetId(primary, &ids[0]));
  DRIVER(cuCtxGetId(created, &ids[1]));
  DRIVER(cuCtxGetFlags(&flags));
  EXPECT(ids[0] != ids[1] && (flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC);
  unsigned version = 0;
  DRIVER(cuCtxGetApiVersion(created, &version));
  EXPECT(version >= 3020);
  if (answers) EXPECT_CODE(cuCtxSetCurrent(reinterpret_cast<CUcontext>(&version)), CUDA_ERROR_INVALID_CONTEXT);

  // What is made in it knows it, and ends with it.
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  CUcontext of_stream = nullptr, of_memory = nullptr;
  DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  DRIVER(cuMemAlloc(&memory, 1 << 20));
  DRIVER(cuStreamGetCtx(stream, &of_stream));
  DRIVER(cuPointerGetAttribute(&of_memory, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
  EXPECT(of_stream == created && of_memory == created);
  std::thread([&] {
    EXPECT(current() == nullptr);
    DRIVER(cuCtxSetCurrent(created));
    DRIVER(cuMemsetD8(memory, 1, 16));
    DRIVER(cuCtxSetCurrent(nullptr));
  }).join();
  DRIVER(cuCtxDestroy(created));
  EXPECT(current() == primary);
  DRIVER(cuDevicePrimaryCtxRelease(last));
  if (!answers) return;
  EXPECT_CODE(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  size_t free_bytes = 0, total = 0;
  DRIVER(cuMemGetInfo(&free_bytes, &total));
  EXPECT(free_bytes == total);
  EXPECT_CODE(cuCtxPushCurrent(created), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CODE(cuCtxDestroy(primary), CUDA_ERROR_INVALID_CONTEXT);
}

// A thread without a context uses another's stream, which says what is meant.
void needs_no_context_beside_a_stream() {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
  DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  DRIVER(cuEventCreate(&event, CU_EVENT_DEFAULT));
  DRIVER(cuMemAlloc(&memory, 64));
  std::thread([&] {
    DRIVER(cuMemsetD8Async(memory, 7, 64, stream));
    DRIVER(cuEventRecord(event, stream));
    DRIVER(cuEventSynchronize(event));
    EXPECT_CODE(cuEventRecord(event, nullptr), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(current() == nullptr);
  }).join();
  unsigned char last = 0;
  DRIVER(cuMemcpyDtoH(&last, memory + 63, 1));
  EXPECT(last == 7);
  DRIVER(cuMemFree(memory));
  DRIVER(cuEventDestroy(event));
  DRIVER(cuStreamDestroy(stream));
}

// Another thread destroys the context that this one has current.
void notices_a_destroyed_context() {
  CUcontext created = nullptr;
  CUdeviceptr memory = 0;
  DRIVER(cuCtxCreate(&created, nullptr, 0, 0));
  std::thread([&] { DRIVER(cuCtxDestroy(created)); }).join();
  EXPECT_CODE(cuMemAlloc(&memory, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  DRIVER(cuCtxPopCurrent(nullptr));
}

// Each thread in a context of its own, all on two devices.
void works_in_threads(const std::string& ptx) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&ptx, i] {
      CUcontext context = nullptr;
      DRIVER(cuCtxCreate(&context, nullptr, 0, i % (last + 1)));
      CUmodule module = nullptr;
      CUfunction function = nullptr;
      CUstream stream = nullptr;
      CUdeviceptr memory = 0;
      DRIVER(cuModuleLoadData(&module, ptx.c_str()));
      DRIVER(cuModuleGetFunction(&function, module, "add_one"));
      DRIVER(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
      DRIVER(cuMemAlloc(&memory, 1000 * 4));
      DRIVER(cuMemsetD32Async(memory, i, 1000, stream));
      int count = 1000;
      void* arguments[] = {&memory, &count};
      for (int launch = 0; launch < 10; ++launch)
        DRIVER(cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
      std::vector<int> values(1000);
      DRIVER(cuMemcpyDtoHAsync(values.data(), memory, values.size() * 4, stream));
      DRIVER(cuStreamSynchronize(stream));
      for (const int value : values) EXPECT(value == i + 10);
      DRIVER(cuCtxDestroy(context));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int count, char** arguments) {
  answers = asks_for_answers(count, arguments);
  begins();
  describes_devices();
  stacks_contexts();
  if (answers) needs_no_context_beside_a_stream();
  if (answers) notices_a_destroyed_context();
  works_in_threads(contents_of(beside(arguments[0], "driver_kernels.ptx")));
  std::puts("PASS");
}
