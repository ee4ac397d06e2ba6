// Contexts: primary ones, those that the program makes, and the calling thread's stack of them.

#include "client/driver/contexts.h"
#include "client/driver/functions.h"
#include "client/driver/modules.h"
#include "client/driver/runtime_functions.h"
#include "client/runtime.h"

namespace heddle::client {
namespace {

constexpr unsigned kFlagsMask = 0xff;
constexpr unsigned kApiVersion = 3020;  // of every context since CUDA 3.2

// --- primary contexts ---
// The device and all that the program has on it.
Done reset(CUdevice device) {
  const OnDevice place(device);
  const LastErrorKept kept;
  unload_modules_of(primary_context(device));
  const cudaError_t code = cudaDeviceReset();
  return code == cudaSuccess ? Done{} : refuse(code);
}

CUresult retain_primary(CUcontext* context, CUdevice device) {
  return in_driver([&]() -> Done {
    if (!context) return refuse(cudaErrorInvalidValue);
    HEDDLE_ANSWER(check_device(device));
    auto opened = runtime().device(device);
    if (!opened) return tl::unexpected(std::move(opened).error());
    primary_context(device).retained.fetch_add(1);
    *context = &primary_context(device);
    return {};
  });
}

// With the last of its users the context ends, and what is in it. The runtime is one of them where nvcc built any of
// the program's code, or a thread has called it without a context.
CUresult release_primary(CUdevice device) {
  return in_driver([&]() -> Done {
    HEDDLE_ANSWER(check_device(device));
    Context& primary = primary_context(device);
    unsigned before = primary.retained.load();
    do {
      if (before == 0) return refuse(cudaErrorDeviceUninitialized);
    } while (!primary.retained.compare_exchange_weak(before, before - 1));
    const bool of_runtime = primary.used_by_runtime || runtime().registry.has_registered_modules();
    return before > 1 || of_runtime || has_created_contexts(device) ? Done{} : reset(device);
  });
}

CUresult reset_primary(CUdevice device) {
  return in_driver([&]() -> Done {
    HEDDLE_ANSWER(check_device(device));
    primary_context(device).used_by_runtime = false;
    return reset(device);
  });
}

CUresult set_primary_flags(CUdevice device, unsigned flags) {
  return in_driver([&]() -> Done {
    HEDDLE_ANSWER(check_device(device));
    if (flags & ~kFlagsMask) return refuse(cudaErrorInvalidValue);
    primary_context(device).flags = flags;
    return {};
  });
}

CUresult primary_state(CUdevice device, unsigned* flags, int* active) {
  return in_driver([&]() -> Done {
    HEDDLE_ANSWER(check_device(device));
    if (!flags || !active) return refuse(cudaErrorInvalidValue);
    const Context& primary = primary_context(device);
    *flags = primary.flags;
    *active = primary.retained > 0 || primary.used_by_runtime;
    return {};
  });
}

// --- contexts that the program makes ---
CUresult create(CUcontext* context, unsigned flags, CUdevice device) {
  return in_driver([&]() -> Done {
    if (!context || (flags & ~kFlagsMask)) return refuse(cudaErrorInvalidValue);
    HEDDLE_ANSWER(check_device(device));
    auto opened = runtime().device(device);
    if (!opened) return tl::unexpected(std::move(opened).error());
    HEDDLE_ANSWER((*opened)->failure());
    *context = create_context(device, flags);
    push_context(*context);
    return {};
  });
}

CUresult create_with_affinity(CUcontext* context, void* parameters, int count, unsigned flags, CUdevice device) {
  if (parameters && count > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(context, flags, device);
}

CUresult create_with_parameters(CUcontext* context, const CUctxCreateParams* parameters, unsigned flags,
                                CUdevice device) {
  if (parameters && parameters->cigParams) return driver_unsupported("cuCtxCreate for graphics (CIG)");
  if (parameters && parameters->numExecAffinityParams > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(context, flags, device);
}

void release(const OwnedObject& object) {
  switch (object.kind) {
    case Owned::kMemory:
      cudaFree(reinterpret_cast<void*>(object.handle));
      return;
    case Owned::kArray:
      cudaFreeArray(reinterpret_cast<cudaArray_t>(object.handle));
      return;
    case Owned::kStream:
      cudaStreamDestroy(reinterpret_cast<cudaStream_t>(object.handle));
      return;
    case Owned::kEvent:
      cudaEventDestroy(reinterpret_cast<cudaEvent_t>(object.handle));
      return;
    case Owned::kPool:
      cudaMemPoolDestroy(reinterpret_cast<cudaMemPool_t>(object.handle));
      return;
  }
}

// Waits for the context's work, which is the device's, and releases what was made in it.
CUresult destroy(CUcontext handle) {
  return in_driver([&]() -> Done {
    auto context = find_context(handle);
    if (!context) return tl::unexpected(std::move(context).error());
    if ((*context)->primary) return refuse(cudaErrorDeviceUninitialized);
    if (thread_place().context == *context) pop_context();
    const OnDevice place((*context)->device);
    const LastErrorKept kept;
    const cudaError_t health = cudaDeviceSynchronize();
    end_context(**context);
    for (const OwnedObject& object : take_owned(**context)) release(object);
    unload_modules_of(**context);
    return health == cudaSuccess ? Done{} : refuse(health);
  });
}

// --- the stack ---
CUresult push(CUcontext handle) {
  return in_driver([&]() -> Done {
    auto context = find_context(handle);
    if (!context) return tl::unexpected(std::move(context).error());
    push_context(*context);
    return {};
  });
}

CUresult pop(CUcontext* context) {
  return in_driver([&]() -> Done {
    Context* const top = pop_context();
    if (!top) return refuse(cudaErrorDeviceUninitialized);
    if (context) *context = top;
    return {};
  });
}

CUresult set_current(CUcontext handle) {
  return in_driver([&]() -> Done {
    if (!handle) {
      replace_context(nullptr);
      return {};
    }
    auto context = find_context(handle);
    if (!context) return tl::unexpected(std::move(context).error());
    replace_context(*context);
    return {};
  });
}

CUresult get_current(CUcontext* context) {
  return in_driver([&]() -> Done {
    if (!context) return refuse(cudaErrorInvalidValue);
    *context = thread_place().context;
    return {};
  });
}

// --- what a context is ---
// Runs `body` on the context, or on the current one where the handle is null.
template <class Body>
CUresult on_context(CUcontext handle, Body&& body) {
  if (!handle) return in_context([&] { return body(*thread_place().context); });
  return in_driver([&]() -> Done {
    auto context = find_context(handle);
    return context ? body(**context) : Done(tl::unexpected(std::move(context).error()));
  });
}

template <class Value, class From>
CUresult tell(CUcontext handle, Value* to, From&& from) {
  return on_context(handle, [&](const Context& context) -> Done {
    if (!to) return refuse(cudaErrorInvalidValue);
    *to = from(context);
    return {};
  });
}

CUresult device_of(CUdevice* device, CUcontext handle) {
  return tell(handle, device, [](const Context& context) { return context.device; });
}

CUresult current_device(CUdevice* device) {
  return device_of(device, nullptr);
}

CUresult flags(unsigned* flags) {
  return tell(nullptr, flags, [](const Context& context) { return context.flags.load(); });
}

CUresult set_flags(unsigned flags) {
  return in_context([&]() -> Done {
    if (flags & ~kFlagsMask) return refuse(cudaErrorInvalidValue);
    thread_place().context->flags = flags;
    return {};
  });
}

CUresult id(CUcontext handle, unsigned long long* id) {
  return tell(handle, id, [](const Context& context) { return context.id; });
}

CUresult api_version(CUcontext handle, unsigned* version) {
  return tell(handle, version, [](const Context&) { return kApiVersion; });
}

CUresult synchronize(CUcontext handle) {
  return on_context(handle, [](const Context& context) -> Done {
    const OnDevice place(context.device);
    const LastErrorKept kept;
    const cudaError_t code = cudaDeviceSynchronize();
    return code == cudaSuccess ? Done{} : refuse(code);
  });
}

// No context has a part of a device.
CUresult affinity(void*, int) {
  return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

// Peers of a context are the devices of others.
CUresult enable_peer(CUcontext handle, unsigned flags) {
  return in_context([&]() -> Done {
    auto peer = find_context(handle);
    if (!peer) return tl::unexpected(std::move(peer).error());
    const LastErrorKept kept;
    return refuse(cudaDeviceEnablePeerAccess((*peer)->device, flags));
  });
}

CUresult disable_peer(CUcontext handle) {
  return in_context([&]() -> Done {
    auto peer = find_context(handle);
    if (!peer) return tl::unexpected(std::move(peer).error());
    const LastErrorKept kept;
    return refuse(cudaDeviceDisablePeerAccess((*peer)->device));
  });
}

}  // namespace

std::span<const DriverFunction> driver_context_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuDevicePrimaryCtxRetain, 7000, retain_primary),
      HEDDLE_DRIVER(cuDevicePrimaryCtxRelease, 7000, release_primary),
      HEDDLE_DRIVER(cuDevicePrimaryCtxRelease_v2, 11000, release_primary),
      HEDDLE_DRIVER(cuDevicePrimaryCtxReset, 7000, reset_primary),
      HEDDLE_DRIVER(cuDevicePrimaryCtxReset_v2, 11000, reset_primary),
      HEDDLE_DRIVER(cuDevicePrimaryCtxSetFlags, 7000, set_primary_flags),
      HEDDLE_DRIVER(cuDevicePrimaryCtxSetFlags_v2, 11000, set_primary_flags),
      HEDDLE_DRIVER(cuDevicePrimaryCtxGetState, 7000, primary_state),
      HEDDLE_DRIVER(cuCtxCreate, 2000, create),
      HEDDLE_DRIVER(cuCtxCreate_v2, 3020, create),
      HEDDLE_DRIVER(cuCtxCreate_v3, 11040, create_with_affinity),
      HEDDLE_DRIVER(cuCtxCreate_v4, 12050, create_with_parameters),
      HEDDLE_DRIVER(cuCtxDestroy, 2000, destroy),
      HEDDLE_DRIVER(cuCtxDestroy_v2, 4000, destroy),
      HEDDLE_DRIVER(cuCtxPushCurrent, 2000, push),
      HEDDLE_DRIVER(cuCtxPushCurrent_v2, 4000, push),
      HEDDLE_DRIVER(cuCtxPopCurrent, 2000, pop),
      HEDDLE_DRIVER(cuCtxPopCurrent_v2, 4000, pop),
      HEDDLE_DRIVER(cuCtxSetCurrent, 4000, set_current),
      HEDDLE_DRIVER(cuCtxGetCurrent, 4000, get_current),
      HEDDLE_DRIVER(cuCtxGetDevice, 2000, current_device),
      HEDDLE_DRIVER(cuCtxGetDevice_v2, 13000, device_of),
      HEDDLE_DRIVER(cuCtxGetFlags, 7000, flags),
      HEDDLE_DRIVER(cuCtxSetFlags, 12010, set_flags),
      HEDDLE_DRIVER(cuCtxGetId, 12000, id),
      HEDDLE_DRIVER(cuCtxGetApiVersion, 3020, api_version),
      HEDDLE_DRIVER(cuCtxSynchronize, 2000, Same<&cudaDeviceSynchronize>::call),
      HEDDLE_DRIVER(cuCtxSynchronize_v2, 13000, synchronize),
      HEDDLE_DRIVER(cuCtxGetLimit, 3010, Same<&cudaDeviceGetLimit>::call),
      HEDDLE_DRIVER(cuCtxSetLimit, 3010, Same<&cudaDeviceSetLimit>::call),
      HEDDLE_DRIVER(cuCtxGetCacheConfig, 3020, Same<&cudaDeviceGetCacheConfig>::call),
      HEDDLE_DRIVER(cuCtxSetCacheConfig, 3020, Same<&cudaDeviceSetCacheConfig>::call),
      HEDDLE_DRIVER(cuCtxGetSharedMemConfig, 4020, Same<&cudaDeviceGetSharedMemConfig>::call),
      HEDDLE_DRIVER(cuCtxSetSharedMemConfig, 4020, Same<&cudaDeviceSetSharedMemConfig>::call),
      HEDDLE_DRIVER(cuCtxGetStreamPriorityRange, 5050, Same<&cudaDeviceGetStreamPriorityRange>::call),
      HEDDLE_DRIVER(cuCtxResetPersistingL2Cache, 11000, Same<&cudaCtxResetPersistingL2Cache>::call),
      HEDDLE_DRIVER(cuCtxGetExecAffinity, 11040, affinity),
      HEDDLE_DRIVER(cuCtxEnablePeerAccess, 4000, enable_peer),
      HEDDLE_DRIVER(cuCtxDisablePeerAccess, 4000, disable_peer),
  };
  return rows;
}

}  // namespace heddle::client
