// A libcufft for tests on machines without a GPU, in the place of NVIDIA's: what a worker calls of it. Its transforms
// are those of software devices; its work areas are written to, so that one that is not there shows. Writes to device
// memory directly, which the driver for tests lets it do.

#include <cstring>
#include <map>

#include "device/software/libraries/fourier.h"
#include "library/cufft.h"

// NOLINTBEGIN: the names and signatures are the library's.

namespace {

using heddle::library::Library;
using heddle::library::cufft::Function;
using heddle::library::cufft::Layout;
using heddle::library::cufft::Transform;

constexpr size_t kWorkBytes = 4096;

struct Plan {
  Transform transform;
  void* area = nullptr;
};
std::map<int, Plan> plans;

Layout layout(const long long* embed, long long stride, long long distance, int rank) {
  Layout read;
  if (!embed) return read;
  read = {false, {1, 1, 1}, stride, distance};
  for (int i = 0; i < rank; ++i) read.embed[static_cast<size_t>(3 - rank + i)] = embed[i];
  return read;
}

int execute(int handle, Function function, void* in, void* out, bool forward) {
  Plan& plan = plans.at(handle);
  std::memset(plan.area, 0xff, kWorkBytes);
  Transform transform = plan.transform;
  transform.input = reinterpret_cast<uint64_t>(in);
  transform.output = reinterpret_cast<uint64_t>(out);
  transform.forward = forward;
  const auto words = transform.pack();
  heddle::software::run_cufft({Library::kCufft, static_cast<uint32_t>(function), words});
  return 0;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int

API cufftGetVersion(int* version) {
  *version = 12000;
  return 0;
}
API cufftCreate(int* handle) {
  *handle = plans.empty() ? 1 : plans.rbegin()->first + 1;
  plans[*handle] = {};
  return 0;
}
API cufftDestroy(int handle) {
  plans.erase(handle);
  return 0;
}
API cufftSetAutoAllocation(int, int) {
  return 0;
}
API cufftMakePlanMany64(int handle, int rank, long long* size, long long* in_embed, long long in_stride,
                        long long in_distance, long long* out_embed, long long out_stride, long long out_distance,
                        int type, long long batch, size_t* bytes) {
  constexpr int kNotSupported = 16;
  if (size[rank - 1] == 13) return kNotSupported;  // so that a test sees what becomes of it
  Transform& made = plans.at(handle).transform;
  made.type = type;
  made.rank = static_cast<uint32_t>(rank);
  for (int i = 0; i < rank; ++i) made.size[static_cast<size_t>(3 - rank + i)] = size[i];
  made.in = layout(in_embed, in_stride, in_distance, rank);
  made.out = layout(out_embed, out_stride, out_distance, rank);
  made.batch = batch;
  *bytes = kWorkBytes;
  return 0;
}
API cufftSetStream(int, void*) {
  return 0;
}
API cufftSetWorkArea(int handle, void* area) {
  plans.at(handle).area = area;
  return 0;
}
API cufftExecC2C(int handle, void* in, void* out, int direction) {
  return execute(handle, Function::kC2C, in, out, direction == -1);
}
API cufftExecZ2Z(int handle, void* in, void* out, int direction) {
  return execute(handle, Function::kZ2Z, in, out, direction == -1);
}
API cufftExecR2C(int handle, void* in, void* out) {
  return execute(handle, Function::kR2C, in, out, true);
}
API cufftExecD2Z(int handle, void* in, void* out) {
  return execute(handle, Function::kD2Z, in, out, true);
}
API cufftExecC2R(int handle, void* in, void* out) {
  return execute(handle, Function::kC2R, in, out, false);
}
API cufftExecZ2D(int handle, void* in, void* out) {
  return execute(handle, Function::kZ2D, in, out, false);
}

// NOLINTEND
