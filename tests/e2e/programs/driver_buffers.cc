// Memory, copies, fills, arrays, pointers, streams, events and graphs, in the driver API alone.
// "driver_buffers [answers]"

#include <cstring>
#include <vector>

#include "driver_check.h"

namespace {

void fills() {
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  DRIVER(cuMemAlloc(&memory, 1024));
  std::vector<unsigned char> bytes(1024);
  DRIVER(cuMemsetD32(memory, 0x01020304, 256));
  DRIVER(cuMemsetD16(memory + 100, 0xabcd, 2));
  DRIVER(cuMemsetD8(memory + 1023, 7, 1));
  DRIVER(cuMemcpyDtoH(bytes.data(), memory, 1024));
  EXPECT(bytes[0] == 4 && bytes[3] == 1 && bytes[100] == 0xcd && bytes[103] == 0xab && bytes[104] == 4);
  EXPECT(bytes[1023] == 7);
  EXPECT_CODE(cuMemsetD32(memory + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemsetD8(memory, 0, 1 << 30), CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuMemFree(memory));

  DRIVER(cuMemAllocPitch(&memory, &pitch, 100, 10, 4));
  EXPECT(pitch >= 100);
  DRIVER(cuMemsetD2D8(memory, pitch, 1, pitch, 10));
  DRIVER(cuMemsetD2D32(memory + 4, pitch, 0x05050505, 5, 3));
  std::vector<unsigned char> rows(10 * 100);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = memory;
  copy.srcPitch = pitch;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = rows.data();
  copy.WidthInBytes = 100;
  copy.Height = 10;
  DRIVER(cuMemcpy2D(&copy));
  EXPECT(rows[3] == 1 && rows[4] == 5 && rows[23] == 5 && rows[24] == 1 && rows[204] == 5 && rows[304] == 1);
  copy.srcMemoryType = static_cast<CUmemorytype>(9);
  EXPECT_CODE(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuMemFree(memory));
  EXPECT_CODE(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAlloc(&memory, 0), CUDA_ERROR_INVALID_VALUE);
}

void copies_boxes() {
  constexpr size_t kWidth = 12, kHeight = 5, kDepth = 4;
  std::vector<float> from(kWidth * kHeight * kDepth), to(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  CUarray array = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR description{kWidth, kHeight, kDepth, CU_AD_FORMAT_FLOAT, 1, 0}, told{};
  DRIVER(cuArray3DCreate(&array, &description));
  DRIVER(cuArray3DGetDescriptor(&told, array));
  EXPECT(told.Width == kWidth && told.Depth == kDepth && told.Format == CU_AD_FORMAT_FLOAT && told.NumChannels == 1);
  CUDA_MEMCPY3D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = from.data();
  in.srcPitch = kWidth * 4;
  in.srcHeight = kHeight;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = array;
  in.WidthInBytes = kWidth * 4;
  in.Height = kHeight;
  in.Depth = kDepth;
  DRIVER(cuMemcpy3D(&in));
  CUDA_MEMCPY3D out{};  // a part of it: from (2, 1, 1) on
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = array;
  out.srcXInBytes = 8;
  out.srcY = out.srcZ = 1;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = to.data();
  out.dstPitch = 3 * 4;
  out.dstHeight = 2;
  out.WidthInBytes = 3 * 4;
  out.Height = 2;
  out.Depth = 2;
  DRIVER(cuMemcpy3D(&out));
  for (size_t z = 0; z < 2; ++z) {
    for (size_t y = 0; y < 2; ++y) {
      for (size_t x = 0; x < 3; ++x)
        EXPECT(to[(z * 2 + y) * 3 + x] == from[((z + 1) * kHeight + y + 1) * kWidth + x + 2]);
    }
  }
  DRIVER(cuArrayDestroy(array));

  CUDA_ARRAY_DESCRIPTOR line{64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  unsigned char bytes[64], back[64] = {};
  for (int i = 0; i < 64; ++i) bytes[i] = static_cast<unsigned char>(i);
  DRIVER(cuArrayCreate(&array, &line));
  DRIVER(cuMemcpyHtoA(array, 0, bytes, 64));
  DRIVER(cuMemcpyAtoH(back, array, 32, 32));
  EXPECT(back[0] == 32 && back[31] == 63);
  DRIVER(cuArrayDestroy(array));
}

void knows_pointers() {
  CUdeviceptr memory = 0, base = 0, managed = 0, seen = 0;
  size_t bytes = 0;
  DRIVER(cuMemAlloc(&memory, 12'345));
  DRIVER(cuMemGetAddressRange(&base, &bytes, memory + 12'000));
  EXPECT(base == memory && bytes == 12'345);
  EXPECT_CODE(cuMemGetAddressRange(&base, &bytes, 4096), CUDA_ERROR_NOT_FOUND);
  CUmemorytype type{};
  unsigned is_managed = 7;
  int ordinal = -1;
  DRIVER(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 5));
  DRIVER(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory));
  DRIVER(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
  DRIVER(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 100));
  EXPECT(type == CU_MEMORYTYPE_DEVICE && is_managed == 0 && ordinal == 0 && base == memory);

  int* pinned = nullptr;
  DRIVER(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  DRIVER(cuMemHostGetDevicePointer(&seen, pinned, 0));
  DRIVER(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, seen));
  EXPECT(type == CU_MEMORYTYPE_HOST);
  unsigned flags = 0;
  DRIVER(cuMemHostGetFlags(&flags, pinned));
  EXPECT(flags & CU_MEMHOSTALLOC_DEVICEMAP);
  DRIVER(cuMemsetD32(memory, 9, 4));
  DRIVER(cuMemcpy(reinterpret_cast<CUdeviceptr>(pinned), memory, 16));
  EXPECT(pinned[3] == 9);
  DRIVER(cuMemFreeHost(pinned));

  DRIVER(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  DRIVER(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
  EXPECT(is_managed == 1);
  DRIVER(cuMemFree(managed));

  int on_host = 0;
  const auto host = reinterpret_cast<CUdeviceptr>(&on_host);
  EXPECT_CODE(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, host), CUDA_ERROR_INVALID_VALUE);
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  unsigned kind = 7;
  void* answers[] = {&kind, &ordinal};
  DRIVER(cuPointerGetAttributes(2, asked, answers, host));
  EXPECT(kind == 0);
  DRIVER(cuMemFree(memory));
}

void orders_allocations() {
  CUmemoryPool pool = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  DRIVER(cuDeviceGetDefaultMemPool(&pool, 0));
  DRIVER(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
  DRIVER(cuMemAllocAsync(&memory, 1 << 20, stream));
  DRIVER(cuMemsetD8Async(memory, 3, 1 << 20, stream));
  unsigned char last = 0;
  DRIVER(cuMemcpyDtoHAsync(&last, memory + (1 << 20) - 1, 1, stream));
  DRIVER(cuMemFreeAsync(memory, stream));
  DRIVER(cuStreamSynchronize(stream));
  EXPECT(last == 3);
  cuuint64_t used = 1;
  DRIVER(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT(used == 0);
  DRIVER(cuStreamDestroy(stream));
}

void times_and_captures(const std::string& ptx) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  CUevent start = nullptr, end = nullptr;
  CUdeviceptr memory = 0;
  int count = 256;
  DRIVER(cuModuleLoadData(&module, ptx.c_str()));
  DRIVER(cuModuleGetFunction(&function, module, "add_one"));
  DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  DRIVER(cuEventCreate(&start, CU_EVENT_DEFAULT));
  DRIVER(cuEventCreate(&end, CU_EVENT_DEFAULT));
  DRIVER(cuMemAlloc(&memory, 256 * 4));
  DRIVER(cuMemsetD32Async(memory, 0, 256, stream));
  void* arguments[] = {&memory, &count};
  DRIVER(cuEventRecord(start, stream));
  DRIVER(cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
  DRIVER(cuEventRecord(end, stream));
  DRIVER(cuEventSynchronize(end));
  float milliseconds = -1;
  DRIVER(cuEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds >= 0);

  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  size_t nodes = 0;
  DRIVER(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  DRIVER(cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
  CUstreamCaptureStatus status;
  DRIVER(cuStreamIsCapturing(stream, &status));
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  DRIVER(cuStreamEndCapture(stream, &graph));
  CUgraphNode captured = nullptr, fill = nullptr, copy = nullptr, added = nullptr;
  nodes = 1;
  DRIVER(cuGraphGetNodes(graph, &captured, &nodes));
  CUDA_KERNEL_NODE_PARAMS kernel{};
  DRIVER(cuGraphKernelNodeGetParams(captured, &kernel));
  EXPECT(kernel.func == function && kernel.blockDimX == 256);

  // The same kernel again, then a copy of what it left; a fill comes before all.
  CUcontext context = nullptr;
  DRIVER(cuCtxGetCurrent(&context));
  CUDA_MEMSET_NODE_PARAMS zero{memory, 0, 100, 4, 256, 1};
  DRIVER(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &zero, context));
  DRIVER(cuGraphAddDependencies(graph, &fill, &captured, nullptr, 1));
  DRIVER(cuGraphAddKernelNode(&added, graph, &captured, 1, &kernel));
  int* result = nullptr;
  DRIVER(cuMemAllocHost(reinterpret_cast<void**>(&result), 256 * 4));
  CUDA_MEMCPY3D out{};
  out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  out.srcDevice = memory;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = result;
  out.WidthInBytes = 256 * 4;
  out.Height = out.Depth = 1;
  DRIVER(cuGraphAddMemcpyNode(&copy, graph, &added, 1, &out, context));
  DRIVER(cuGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < 3; ++launch) {
    DRIVER(cuGraphLaunch(exec, stream));
    DRIVER(cuStreamSynchronize(stream));
    for (int i = 0; i < 256; ++i) EXPECT(result[i] == 102);
  }
  int called = 0;
  DRIVER(cuLaunchHostFunc(
      stream, [](void* data) { *static_cast<int*>(data) = 1; }, &called));
  DRIVER(cuStreamSynchronize(stream));
  EXPECT(called == 1);
  DRIVER(cuGraphExecDestroy(exec));
  DRIVER(cuGraphDestroy(graph));
  DRIVER(cuMemFreeHost(result));
  DRIVER(cuMemFree(memory));
  DRIVER(cuEventDestroy(start));
  DRIVER(cuEventDestroy(end));
  DRIVER(cuStreamDestroy(stream));
}

// Of the calling thread's own default stream; they exist beside those of cuda.h's plain names.
void has_twins() {
  using Copy = CUresult (*)(CUdeviceptr, const void*, size_t);
  void* found = nullptr;
  CUdriverProcAddressQueryResult status;
  DRIVER(cuGetProcAddress("cuMemcpyHtoD", &found, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
  CUdeviceptr memory = 0;
  int value = 17, back = 0;
  DRIVER(cuMemAlloc(&memory, 4));
  DRIVER(reinterpret_cast<Copy>(found)(memory, &value, 4));
  DRIVER(cuMemcpyDtoH(&back, memory, 4));
  EXPECT(back == 17);
  DRIVER(cuMemFree(memory));
}

}  // namespace

int main(int count, char** arguments) {
  DRIVER(cuInit(0));
  CUcontext context;
  DRIVER(cuCtxCreate(&context, nullptr, 0, 0));
  fills();
  copies_boxes();
  knows_pointers();
  orders_allocations();
  times_and_captures(contents_of(beside(arguments[0], "driver_kernels.ptx")));
  has_twins();
  if (asks_for_answers(count, arguments)) {
    CUipcMemHandle handle;
    EXPECT_CODE(cuIpcGetMemHandle(&handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_CODE(cuIpcGetMemHandle(&handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  }
  DRIVER(cuCtxDestroy(context));
  std::puts("PASS");
}
