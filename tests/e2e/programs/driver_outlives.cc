// As outlives.cu, of the driver API alone: modules that are loaded at run time, before and between the steps, with
// variables that kernels change, and memory of a context of the program's own.
//
// Usage: driver_outlives DIRECTORY STEPS: step n begins when DIRECTORY/n is there. Its kernels lie beside the program.
#include <unistd.h>

#include "driver_check.h"

namespace {

constexpr int kCount = 1000;

struct Kernels {
  explicit Kernels(const std::string& ptx) {
    size_t bytes = 0;
    DRIVER(cuModuleLoadData(&module, ptx.c_str()));
    DRIVER(cuModuleGetFunction(&count, module, "count"));
    DRIVER(cuModuleGetFunction(&add_one, module, "add_one"));
    DRIVER(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
  }
  // Adds to the counter, and to each number.
  void run(CUdeviceptr numbers, CUstream stream) const {
    int many = kCount;
    void* arguments[] = {&numbers, &many};
    DRIVER(cuLaunchKernel(count, 1, 1, 1, 64, 1, 1, 0, stream, nullptr, nullptr));
    DRIVER(cuLaunchKernel(add_one, 4, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
  }
  int counted() const {
    int value = 0;
    DRIVER(cuMemcpyDtoH(&value, counter, sizeof value));
    return value;
  }

  CUmodule module = nullptr;
  CUfunction count = nullptr, add_one = nullptr;
  CUdeviceptr counter = 0;
};

}  // namespace

int main(int, char** arguments) {
  const std::string directory = arguments[1], ptx = contents_of(beside(arguments[0], "driver_kernels.ptx"));
  const int steps = std::atoi(arguments[2]);
  DRIVER(cuInit(0));
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr numbers = 0;
  DRIVER(cuCtxCreate(&context, nullptr, 0, 0));
  DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  DRIVER(cuMemAlloc(&numbers, kCount * sizeof(int)));
  DRIVER(cuMemsetD32(numbers, 0, kCount));
  const Kernels first(ptx);
  first.run(numbers, stream);
  DRIVER(cuCtxSynchronize());
  for (int step = 1; step <= steps; ++step) {
    std::printf("step %d\n", step);
    std::fflush(stdout);
    while (access((directory + "/" + std::to_string(step)).c_str(), F_OK) != 0) usleep(2000);
    const Kernels another(ptx);
    first.run(numbers, stream);
    another.run(numbers, stream);
    DRIVER(cuStreamSynchronize(stream));
    int values[2];
    DRIVER(cuMemcpyDtoH(&values[0], numbers, sizeof(int)));
    DRIVER(cuMemcpyDtoH(&values[1], numbers + (kCount - 1) * sizeof(int), sizeof(int)));
    std::printf("counted %d and %d, numbers %d %d\n", first.counted(), another.counted(), values[0], values[1]);
    DRIVER(cuModuleUnload(another.module));
  }
  DRIVER(cuCtxDestroy(context));
  std::puts("PASS");
}
