// A kernel of a program of the driver API writes where there is no memory: prints what the calls behind it answer.
#include "driver_check.h"

int main() {
  const char* text =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry wild()\n{\n.reg .b64 %rd<2>;\n"
      "mov.u64 %rd1, 4096;\nst.global.u64 [%rd1], %rd1;\nret;\n}\n";
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction wild = nullptr;
  CUdeviceptr memory = 0;
  DRIVER(cuInit(0));
  DRIVER(cuCtxCreate(&context, nullptr, 0, 0));
  DRIVER(cuModuleLoadData(&module, text));
  DRIVER(cuModuleGetFunction(&wild, module, "wild"));
  DRIVER(cuMemAlloc(&memory, 4096));
  DRIVER(cuLaunchKernel(wild, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  for (const CUresult result : {cuCtxSynchronize(), cuMemsetD8(memory, 0, 1)}) {
    const char* name = nullptr;
    DRIVER(cuGetErrorName(result, &name));
    std::puts(name);
  }
}
