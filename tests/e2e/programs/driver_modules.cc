// Modules that are loaded at run time: "driver_modules [answers]". A program of the driver API alone.

#include <cmath>
#include <cstring>
#include <vector>

#include "driver_check.h"

namespace {

constexpr int kCount = 10'000, kWidth = 48, kTile = 16;
bool answers = false;

CUfunction function_of(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  DRIVER(cuModuleGetFunction(&function, module, name));
  return function;
}

CUdeviceptr device_copy(const void* from, size_t bytes) {
  CUdeviceptr to = 0;
  DRIVER(cuMemAlloc(&to, bytes));
  DRIVER(cuMemcpyHtoD(to, from, bytes));
  return to;
}

void adds_vectors(CUmodule module) {
  std::vector<float> a(kCount), b(kCount), c(kCount);
  for (int i = 0; i < kCount; ++i) a[i] = i * 0.5f, b[i] = i * 0.25f;
  CUdeviceptr in_a = device_copy(a.data(), kCount * 4), in_b = device_copy(b.data(), kCount * 4), out = 0;
  DRIVER(cuMemAlloc(&out, kCount * 4));
  int count = kCount;
  void* arguments[] = {&in_a, &in_b, &out, &count};
  const unsigned blocks = (kCount + 255) / 256;
  DRIVER(cuLaunchKernel(function_of(module, "vector_add"), blocks, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
  DRIVER(cuCtxSynchronize());
  DRIVER(cuMemcpyDtoH(c.data(), out, kCount * 4));
  for (int i = 0; i < kCount; ++i) EXPECT(c[i] == a[i] + b[i]);
  for (const CUdeviceptr memory : {in_a, in_b, out}) DRIVER(cuMemFree(memory));
}

// Its parameters packed in a buffer.
void multiplies_matrices(CUmodule module) {
  std::vector<float> a(kWidth * kWidth), b(kWidth * kWidth), c(kWidth * kWidth);
  for (int i = 0; i < kWidth * kWidth; ++i) a[i] = i % 7, b[i] = i % 5;
  const CUdeviceptr in_a = device_copy(a.data(), a.size() * 4), in_b = device_copy(b.data(), b.size() * 4);
  CUdeviceptr out = device_copy(c.data(), c.size() * 4);
  struct {
    CUdeviceptr c, a, b;
    int width;
  } packed{out, in_a, in_b, kWidth};
  size_t bytes = offsetof(decltype(packed), width) + sizeof packed.width;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  DRIVER(cuLaunchKernel(function_of(module, "matrix_multiply"), kWidth / kTile, kWidth / kTile, 1, kTile, kTile, 1, 0,
                        nullptr, nullptr, extra));
  DRIVER(cuMemcpyDtoH(c.data(), out, c.size() * 4));
  for (int row = 0; row < kWidth; ++row) {
    for (int column = 0; column < kWidth; ++column) {
      float sum = 0;
      for (int k = 0; k < kWidth; ++k) sum += a[row * kWidth + k] * b[k * kWidth + column];
      EXPECT(c[row * kWidth + column] == sum);
    }
  }
  for (const CUdeviceptr memory : {in_a, in_b, out}) DRIVER(cuMemFree(memory));
}

void reads_and_writes_variables(CUmodule module) {
  CUdeviceptr counter = 0, table = 0, offset = 0;
  size_t bytes = 0;
  DRIVER(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
  EXPECT(bytes == 4);
  DRIVER(cuModuleGetGlobal(&table, &bytes, module, "table"));
  EXPECT(bytes == 256);
  DRIVER(cuModuleGetGlobal(&offset, nullptr, module, "offset"));
  CUdeviceptr nothing = 0;
  EXPECT_CODE(cuModuleGetGlobal(&nothing, nullptr, module, "nothing"), CUDA_ERROR_NOT_FOUND);
  int value = 100;
  DRIVER(cuMemcpyHtoD(counter, &value, 4));
  DRIVER(cuLaunchKernel(function_of(module, "count"), 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr));
  float values[64];
  DRIVER(cuMemcpyDtoH(&value, counter, 4));
  DRIVER(cuMemcpyDtoH(values, table, sizeof values));
  EXPECT(value == 164 && values[63] == 63);
  CUdeviceptr base = 0;
  DRIVER(cuMemGetAddressRange(&base, &bytes, table + 8));
  EXPECT(base == table && bytes == 256);

  const float half = 0.25f;
  DRIVER(cuMemcpyHtoD(offset, &half, 4));
  struct {
    char tag;
    double slope;
    int start;
  } line{'l', 2, 10};
  CUdeviceptr to = 0;
  DRIVER(cuMemAlloc(&to, 32 * 4));
  void* arguments[] = {&line, &to};
  DRIVER(cuLaunchKernel(function_of(module, "draw"), 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  float drawn[32];
  DRIVER(cuMemcpyDtoH(drawn, to, sizeof drawn));
  for (int i = 0; i < 32; ++i) EXPECT(drawn[i] == 10 + 2 * i + 0.25f);
  DRIVER(cuMemFree(to));
}

void describes_its_functions(CUmodule module) {
  unsigned count = 0;
  DRIVER(cuModuleGetFunctionCount(&count, module));
  EXPECT(count == 6);
  std::vector<CUfunction> functions(count);
  DRIVER(cuModuleEnumerateFunctions(functions.data(), count, module));
  const CUfunction multiply = function_of(module, "matrix_multiply");
  EXPECT(multiply == function_of(module, "matrix_multiply"));
  bool found = false;
  for (const CUfunction function : functions) found |= function == multiply;
  EXPECT(found);
  const char* name = nullptr;
  DRIVER(cuFuncGetName(&name, multiply));
  EXPECT(std::strcmp(name, "matrix_multiply") == 0);
  CUmodule owner = nullptr;
  DRIVER(cuFuncGetModule(&owner, multiply));
  EXPECT(owner == module);
  int value = 0;
  DRIVER(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, multiply));
  EXPECT(value == 2 * kTile * kTile * 4);
  DRIVER(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, multiply));
  EXPECT(value >= kTile * kTile);
  size_t offset = 0, size = 0;
  DRIVER(cuFuncGetParamInfo(multiply, 3, &offset, &size));
  EXPECT(offset == 24 && size == 4);
  EXPECT_CODE(cuFuncGetParamInfo(multiply, 4, &offset, &size), CUDA_ERROR_INVALID_VALUE);
  int blocks = 0, grid = 0, block = 0;
  DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, multiply, 256, 0));
  EXPECT(blocks > 0);
  DRIVER(cuOccupancyMaxPotentialBlockSize(&grid, &block, multiply, nullptr, 0, 0));
  EXPECT(grid > 0 && block > 0 && block % 32 == 0);
}

void takes_dynamic_shared_memory(CUmodule module) {
  const CUfunction function = function_of(module, "dynamic_shared");
  CUdeviceptr to = 0;
  DRIVER(cuMemAlloc(&to, 128 * 4));
  void* arguments[] = {&to};
  DRIVER(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 128 * 4, nullptr, arguments, nullptr));
  int values[128];
  DRIVER(cuMemcpyDtoH(values, to, sizeof values));
  for (int i = 0; i < 128; ++i) EXPECT(values[i] == 127 - i);
  EXPECT_CODE(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 1 << 30, nullptr, arguments, nullptr),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuLaunchKernel(function, 0, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr), CUDA_ERROR_INVALID_VALUE);
  if (answers)
    EXPECT_CODE(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuMemFree(to));
}

void loads_libraries(const void* image) {
  CUlibrary library = nullptr;
  DRIVER(cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  DRIVER(cuLibraryGetKernel(&kernel, library, "add_one"));
  EXPECT_CODE(cuLibraryGetKernel(&kernel, library, "nothing"), CUDA_ERROR_NOT_FOUND);
  unsigned count = 0;
  DRIVER(cuLibraryGetKernelCount(&count, library));
  EXPECT(count == 6);
  int value = 41, one = 1;
  CUdeviceptr to = device_copy(&value, 4);
  void* arguments[] = {&to, &one};
  CUfunction function = nullptr;
  DRIVER(cuKernelGetFunction(&function, kernel));
  DRIVER(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 32;
  DRIVER(cuLaunchKernelEx(&config, function, arguments, nullptr));
  DRIVER(cuMemcpyDtoH(&value, to, 4));
  EXPECT(value == 43);
  CUlibrary owner = nullptr;
  DRIVER(cuKernelGetLibrary(&owner, kernel));
  EXPECT(owner == library);
  DRIVER(cuMemFree(to));
  DRIVER(cuLibraryUnload(library));
  if (!answers) return;
  EXPECT_CODE(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

// More often than a session has modules (limits.modules_per_session).
void loads_the_same_again() {
  const char* text = ".version 8.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n";
  for (int i = 0; i < 600; ++i) {
    CUmodule module = nullptr;
    DRIVER(cuModuleLoadData(&module, text));
    DRIVER(cuLaunchKernel(function_of(module, "nothing"), 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
    DRIVER(cuModuleUnload(module));
  }
  DRIVER(cuCtxSynchronize());
}

void links(const std::string& ptx) {
  CUlinkState state = nullptr;
  void* image = nullptr;
  size_t bytes = 0;
  const std::string caller =
      ".version 8.0\n.target sm_75\n.address_size 64\n.extern .func callee(.param .b64 to);\n"
      ".visible .entry caller(.param .u64 to)\n{\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [to];\n"
      "{\n.param .b64 param0;\nst.param.b64 [param0], %rd1;\ncall.uni callee, (param0);\n}\nret;\n}\n";
  const std::string callee =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .func callee(.param .b64 to)\n{\n.reg .b64 %rd<3>;\n"
      ".reg .b32 %r<2>;\nld.param.u64 %rd1, [to];\ncvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r1, 77;\n"
      "st.global.u32 [%rd2], %r1;\nret;\n}\n";
  DRIVER(cuLinkCreate(0, nullptr, nullptr, &state));
  DRIVER(
      cuLinkAddData(state, CU_JIT_INPUT_PTX, (void*)caller.c_str(), caller.size() + 1, "caller", 0, nullptr, nullptr));
  DRIVER(
      cuLinkAddData(state, CU_JIT_INPUT_PTX, (void*)callee.c_str(), callee.size() + 1, "callee", 0, nullptr, nullptr));
  DRIVER(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void*)ptx.c_str(), ptx.size() + 1, "kernels", 0, nullptr, nullptr));
  DRIVER(cuLinkComplete(state, &image, &bytes));
  CUmodule module = nullptr;
  DRIVER(cuModuleLoadData(&module, image));
  DRIVER(cuLinkDestroy(state));
  int value = 0;
  CUdeviceptr to = device_copy(&value, 4);
  void* arguments[] = {&to};
  DRIVER(cuLaunchKernel(function_of(module, "caller"), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  DRIVER(cuMemcpyDtoH(&value, to, 4));
  EXPECT(value == 77);
  DRIVER(cuMemFree(to));
  DRIVER(cuModuleUnload(module));
}

void says_what_is_wrong() {
  CUmodule module = nullptr;
  char log[256] = "as it was";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const char* broken = ".version 8.0\n.target sm_50\n.address_size 64\n.visible .entry broken(\n.param .what\n";
  EXPECT_CODE(cuModuleLoadDataEx(&module, broken, 2, options, values), CUDA_ERROR_INVALID_PTX);
  EXPECT(log[0] != '\0' && std::strcmp(log, "as it was") != 0 && reinterpret_cast<size_t>(values[1]) > 0);
  EXPECT_CODE(cuModuleLoadData(&module, "no module"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_CODE(cuModuleLoad(&module, "/nowhere/nothing.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_CODE(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  const char* later = ".version 8.0\n.target sm_999\n.address_size 64\n.visible .entry later()\n{\nret;\n}\n";
  EXPECT_CODE(cuModuleLoadData(&module, later), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

void runs(CUmodule module) {
  adds_vectors(module);
  multiplies_matrices(module);
  reads_and_writes_variables(module);
  describes_its_functions(module);
  takes_dynamic_shared_memory(module);
  const CUfunction function = function_of(module, "vector_add");
  CUfunction none = nullptr;
  EXPECT_CODE(cuModuleGetFunction(&none, module, "nothing"), CUDA_ERROR_NOT_FOUND);
  DRIVER(cuModuleUnload(module));
  if (!answers) return;
  EXPECT_CODE(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  int value = 0;
  EXPECT_CODE(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string ptx_file = beside(arguments[0], "driver_kernels.ptx"), ptx = contents_of(ptx_file);
  const std::string fatbin_file = beside(arguments[0], "driver_kernels.fatbin"), fatbin = contents_of(fatbin_file);
  answers = asks_for_answers(count, arguments);
  DRIVER(cuInit(0));
  CUdevice device;
  CUcontext context;
  DRIVER(cuDeviceGet(&device, 0));
  DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  DRIVER(cuCtxSetCurrent(context));
  CUmodule module = nullptr;
  DRIVER(cuModuleLoadData(&module, ptx.c_str()));
  runs(module);
  DRIVER(cuModuleLoadDataEx(&module, ptx.c_str(), 0, nullptr, nullptr));
  runs(module);
  DRIVER(cuModuleLoad(&module, ptx_file.c_str()));
  runs(module);
  DRIVER(cuModuleLoad(&module, fatbin_file.c_str()));
  runs(module);
  DRIVER(cuModuleLoadFatBinary(&module, fatbin.data()));
  runs(module);
  loads_libraries(ptx.c_str());
  loads_libraries(fatbin.data());
  loads_the_same_again();
  links(ptx);
  if (answers) says_what_is_wrong();
  DRIVER(cuDevicePrimaryCtxRelease(device));
  std::puts("PASS");
}
