// Runs every form on the first CUDA device and writes what it computed: record FILE. A form that the device's driver
// refuses is reported and left out.

#include <cuda.h>

#include <cstdio>
#include <fstream>

#include "form.h"
#include "recording.h"

namespace {

using namespace heddle::numerics;

bool succeeded(CUresult result, const char* what, const std::string& code) {
  if (result == CUDA_SUCCESS) return true;
  const char* text = "unknown error";
  cuGetErrorString(result, &text);
  std::fprintf(stderr, "%s: %s: %s\n", code.c_str(), what, text);
  return false;
}

// Device memory for the results and the sources of any form.
struct Room {
  CUdeviceptr result = 0, sources[3] = {};
};

bool run(const Form& form, const Room& room, std::vector<uint8_t>& values) {
  CUmodule module;
  CUfunction kernel;
  if (!succeeded(cuModuleLoadData(&module, module_of(form).c_str()), "loading", form.code)) return false;
  bool good = succeeded(cuModuleGetFunction(&kernel, module, "k"), "finding the kernel", form.code);
  for (size_t i = 0; good && i < form.sources.size(); ++i) {
    std::vector<uint8_t> source = inputs_of(form, i);
    good = succeeded(cuMemcpyHtoD(room.sources[i], source.data(), source.size()), "copying", form.code);
  }
  Room copy = room;
  void* parameters[] = {&copy.result, &copy.sources[0], &copy.sources[1], &copy.sources[2]};
  values.resize(size_t{kThreads} * type_of(form.result).bytes);
  good = good &&
         succeeded(cuLaunchKernel(kernel, kThreads / kBlock, 1, 1, kBlock, 1, 1, 0, nullptr, parameters, nullptr),
                   "launching", form.code) &&
         succeeded(cuMemcpyDtoH(values.data(), room.result, values.size()), "running", form.code);
  cuModuleUnload(module);
  return good;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: record FILE\n"), 2;
  CUdevice device;
  CUcontext context;
  Recording recording;
  char name[128] = {};
  bool ready = succeeded(cuInit(0), "cuInit", "") && succeeded(cuDeviceGet(&device, 0), "cuDeviceGet", "") &&
               succeeded(cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName", "") &&
               succeeded(cuDevicePrimaryCtxRetain(&context, device), "context", "") &&
               succeeded(cuCtxSetCurrent(context), "context", "");
  if (!ready) return 1;
  recording.device = name;
  Room room;
  ready = succeeded(cuMemAlloc(&room.result, 8 * kThreads), "memory", "");
  for (CUdeviceptr& source : room.sources) ready = ready && succeeded(cuMemAlloc(&source, 8 * kThreads), "memory", "");
  if (!ready) return 1;
  std::vector<Form> forms = all_forms();
  for (const Form& form : forms) {
    std::vector<uint8_t> values;
    if (run(form, room, values)) recording.results[fingerprint_of(form)] = std::move(values);
  }
  std::ofstream(arguments[1], std::ios::binary) << to_bytes(recording);
  std::printf("%s: recorded %zu of %zu forms\n", name, recording.results.size(), forms.size());
  return recording.results.size() == forms.size() ? 0 : 1;
}
