// What kernels are like, and how many of their blocks fit.

#include <algorithm>

#include "client/driver/contexts.h"
#include "client/driver/functions.h"
#include "client/driver/modules.h"
#include "client/driver/runtime_functions.h"
#include "client/stream/launch.h"

namespace heddle::client {
namespace {

// CUfunction_attribute; the numbers from 8 on are the runtime's too.
enum Attribute : int {
  kMaxThreads = 0,
  kSharedBytes = 1,
  kConstBytes = 2,
  kLocalBytes = 3,
  kRegisters = 4,
  kPtxVersion = 5,
  kBinaryVersion = 6,
  kCacheModeCa = 7,
  kMaxDynamicShared = 8,
  kCarveout = 9,
  kLastClusterAttribute = 15,
};

Answer<int> value_of(const cudaFuncAttributes& from, int attribute) {
  switch (attribute) {
    case kMaxThreads:
      return from.maxThreadsPerBlock;
    case kSharedBytes:
      return static_cast<int>(from.sharedSizeBytes);
    case kConstBytes:
      return static_cast<int>(from.constSizeBytes);
    case kLocalBytes:
      return static_cast<int>(from.localSizeBytes);
    case kRegisters:
      return from.numRegs;
    case kPtxVersion:
      return from.ptxVersion;
    case kBinaryVersion:
      return from.binaryVersion;
    case kCacheModeCa:
      return from.cacheModeCA;
    case kMaxDynamicShared:
      return from.maxDynamicSharedSizeBytes;
    case kCarveout:
      return from.preferredShmemCarveout;
  }
  if (attribute > kCarveout && attribute <= kLastClusterAttribute) return 0;  // no kernel is launched in clusters
  return refuse(cudaErrorInvalidValue);
}

Done tell_attribute(int* to, int attribute, const void* kernel) {
  if (!to) return refuse(cudaErrorInvalidValue);
  cudaFuncAttributes all;
  const LastErrorKept kept;
  const cudaError_t code = cudaFuncGetAttributes(&all, kernel);
  if (code != cudaSuccess) return refuse(code);
  const auto value = value_of(all, attribute);
  if (!value) return tl::unexpected(value.error());
  *to = *value;
  return {};
}

CUresult get_attribute(int* to, int attribute, CUfunction function) {
  return in_context([&] { return tell_attribute(to, attribute, function); });
}

Done done(cudaError_t code) {
  return code == cudaSuccess ? Done{} : refuse(code);
}

template <class Body>
CUresult on_device(CUdevice device, Body&& body) {
  return in_driver([&]() -> Done {
    HEDDLE_ANSWER(check_device(device));
    const OnDevice place(device);
    const LastErrorKept kept;
    return body();
  });
}

// The devices of a session are alike; a kernel has what was set for it on all of them.
CUresult get_kernel_attribute(int* to, int attribute, CUkernel kernel, CUdevice device) {
  return on_device(device, [&] { return tell_attribute(to, attribute, kernel); });
}

CUresult set_kernel_attribute(cudaFuncAttribute attribute, int value, CUkernel kernel, CUdevice device) {
  return on_device(device, [&] { return done(cudaFuncSetAttribute(kernel, attribute, value)); });
}

CUresult set_kernel_cache(CUkernel kernel, cudaFuncCache config, CUdevice device) {
  return on_device(device, [&] { return done(cudaFuncSetCacheConfig(kernel, config)); });
}

CUresult get_module(CUmodule* to, CUfunction handle) {
  return in_context([&]() -> Done {
    if (!to) return refuse(cudaErrorInvalidValue);
    auto function = prepared_function(handle);
    if (!function) return tl::unexpected(std::move(function).error());
    *to = reinterpret_cast<CUmodule>(module_of(**function));
    return {};
  });
}

// A kernel is there as soon as its handle is: what the device has to do comes with the first launch.
CUresult is_loaded(int* state, CUfunction handle) {
  return in_context([&]() -> Done {
    if (!state) return refuse(cudaErrorInvalidValue);
    auto function = prepared_function(handle);
    if (!function) return tl::unexpected(std::move(function).error());
    *state = 1;
    return {};
  });
}

CUresult load(CUfunction handle) {
  int state = 0;
  return is_loaded(&state, handle);
}

// --- occupancy ---
// The shared memory that a block of that size needs.
struct SharedNeed {
  CUoccupancyB2DSize of_block;
  size_t fixed;
  size_t operator()(int threads) const { return of_block ? of_block(threads) : fixed; }
};

struct Best {
  int threads = 0, blocks = 0;  // a block, blocks an SM
};

// The largest block of those that fill an SM best: from the largest that the kernel can have down, by warps.
Answer<Best> best_block(const void* kernel, const SharedNeed& shared, int limit) {
  cudaFuncAttributes all;
  const cudaError_t code = cudaFuncGetAttributes(&all, kernel);
  if (code != cudaSuccess) return refuse(code);
  constexpr int kWarp = 32;
  const int most = limit > 0 ? std::min(limit, all.maxThreadsPerBlock) : all.maxThreadsPerBlock;
  Best best;
  for (int rounded = (most + kWarp - 1) / kWarp * kWarp; rounded > 0; rounded -= kWarp) {
    const int threads = std::min(rounded, most);
    int blocks = 0;
    const cudaError_t counted =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared(threads));
    if (counted != cudaSuccess) return refuse(counted);
    if (blocks * threads > best.blocks * best.threads) best = {threads, blocks};
  }
  return best;
}

CUresult potential_block_size(int* grid, int* block, CUfunction function, CUoccupancyB2DSize of_block, size_t fixed,
                              int limit) {
  return in_context([&]() -> Done {
    if (!grid || !block) return refuse(cudaErrorInvalidValue);
    auto device = runtime().current_device();
    if (!device) return tl::unexpected(std::move(device).error());
    const LastErrorKept kept;
    const auto best = best_block(function, {of_block, fixed}, limit);
    if (!best) return tl::unexpected(best.error());
    *block = best->threads;
    *grid = best->blocks * static_cast<int>((*device)->model().sms);
    return {};
  });
}

CUresult potential_block_size_with_flags(int* grid, int* block, CUfunction function, CUoccupancyB2DSize of_block,
                                         size_t fixed, int limit, unsigned) {
  return potential_block_size(grid, block, function, of_block, fixed, limit);
}

}  // namespace

std::span<const DriverFunction> driver_kernel_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuFuncGetAttribute, 2020, get_attribute),
      HEDDLE_DRIVER(cuFuncSetAttribute, 9000, Same<&cudaFuncSetAttribute>::call),
      HEDDLE_DRIVER(cuFuncSetCacheConfig, 3000, Same<&cudaFuncSetCacheConfig>::call),
      HEDDLE_DRIVER(cuFuncSetSharedMemConfig, 4020, Same<&cudaFuncSetSharedMemConfig>::call),
      HEDDLE_DRIVER(cuFuncGetModule, 11000, get_module),
      HEDDLE_DRIVER(cuFuncGetName, 12030, SameAnywhere<&cudaFuncGetName>::call),
      HEDDLE_DRIVER(cuFuncGetParamInfo, 12040, Same<&cudaFuncGetParamInfo>::call),
      HEDDLE_DRIVER(cuFuncIsLoaded, 12040, is_loaded),
      HEDDLE_DRIVER(cuFuncLoad, 12040, load),
      HEDDLE_DRIVER(cuKernelGetAttribute, 12000, get_kernel_attribute),
      HEDDLE_DRIVER(cuKernelSetAttribute, 12000, set_kernel_attribute),
      HEDDLE_DRIVER(cuKernelSetCacheConfig, 12000, set_kernel_cache),
      HEDDLE_DRIVER(cuKernelGetParamInfo, 12040, Same<&cudaFuncGetParamInfo>::call),
      HEDDLE_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050,
                    Same<&cudaOccupancyMaxActiveBlocksPerMultiprocessor>::call),
      HEDDLE_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000,
                    Same<&cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags>::call),
      HEDDLE_DRIVER(cuOccupancyAvailableDynamicSMemPerBlock, 10020,
                    Same<&cudaOccupancyAvailableDynamicSMemPerBlock>::call),
      HEDDLE_DRIVER(cuOccupancyMaxPotentialBlockSize, 6050, potential_block_size),
      HEDDLE_DRIVER(cuOccupancyMaxPotentialBlockSizeWithFlags, 7000, potential_block_size_with_flags),
  };
  return rows;
}

}  // namespace heddle::client
