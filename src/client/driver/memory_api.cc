// Memory of devices, pinned and managed memory, pools.

#include "client/api/managed_calls.h"
#include "client/driver/address_range.h"
#include "client/driver/contexts.h"
#include "client/driver/functions.h"
#include "client/driver/runtime_functions.h"

namespace heddle::client {
namespace {

constexpr size_t kPitchAlign = 512;  // as the runtime's

void* pointer_to(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

// Runs `make(&pointer)`; what it makes belongs to the current context.
template <class Make>
cudaError_t allocate_into(CUdeviceptr* address, Make&& make) {
  if (!address) return cudaErrorInvalidValue;
  void* pointer = nullptr;
  const cudaError_t made = make(&pointer);
  if (made != cudaSuccess) return made;
  *address = reinterpret_cast<CUdeviceptr>(pointer);
  own(Owned::kMemory, *address);
  return made;
}
template <class Make>
CUresult allocate(CUdeviceptr* address, Make&& make) {
  return in_context([&] { return allocate_into(address, make); });
}

CUresult alloc(CUdeviceptr* address, size_t bytes) {
  return allocate(address,
                  [&](void** pointer) { return bytes == 0 ? cudaErrorInvalidValue : cudaMalloc(pointer, bytes); });
}

CUresult alloc_pitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned element_bytes) {
  const bool possible = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
  if (!pitch || !possible || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  return allocate(address, [&](void** pointer) {
    *pitch = round_up(width, kPitchAlign);
    return cudaMalloc(pointer, *pitch * height);
  });
}

CUresult alloc_managed(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return allocate(address, [&](void** pointer) { return cudaMallocManaged(pointer, bytes, flags); });
}

CUresult alloc_async(CUdeviceptr* address, size_t bytes, cudaStream_t stream) {
  return in_stream(stream, [&] {
    return allocate_into(address, [&](void** pointer) { return cudaMallocAsync(pointer, bytes, stream); });
  });
}

CUresult alloc_from_pool(CUdeviceptr* address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return in_stream(stream, [&] {
    return allocate_into(address,
                         [&](void** pointer) { return cudaMallocFromPoolAsync(pointer, bytes, pool, stream); });
  });
}

// Needs no current context: addresses say whose memory it is.
CUresult free(CUdeviceptr address) {
  return in_driver([&] { return address == 0 ? cudaSuccess : cudaFree(pointer_to(address)); });
}

CUresult free_async(CUdeviceptr address, cudaStream_t stream) {
  return in_stream(stream, [&] { return cudaFreeAsync(pointer_to(address), stream); });
}

CUresult address_range(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return in_context([&]() -> Done {
    const auto range = range_at(address);
    if (!range) return refuse(cudaErrorSymbolNotFound);  // CUDA_ERROR_NOT_FOUND
    if (base) *base = range->address;
    if (bytes) *bytes = range->bytes;
    return {};
  });
}

// --- managed memory ---
CUresult advise(CUdeviceptr address, size_t bytes, int advice, CUdevice device) {
  return in_context([&] { return advise_managed(pointer_to(address), bytes, advice, managed_location(device)); });
}

CUresult advise_v2(CUdeviceptr address, size_t bytes, int advice, cudaMemLocation location) {
  return in_context([&] { return advise_managed(pointer_to(address), bytes, advice, location); });
}

CUresult prefetch(CUdeviceptr address, size_t bytes, CUdevice device, cudaStream_t stream) {
  return in_stream(stream,
                   [&] { return prefetch_managed(pointer_to(address), bytes, managed_location(device), 0, stream); });
}

CUresult prefetch_v2(CUdeviceptr address, size_t bytes, cudaMemLocation location, unsigned flags, cudaStream_t stream) {
  return in_stream(stream, [&] { return prefetch_managed(pointer_to(address), bytes, location, flags, stream); });
}

// --- pools ---
CUresult create_pool(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return in_driver([&] {
    const cudaError_t made = cudaMemPoolCreate(pool, properties);
    if (made == cudaSuccess) own(Owned::kPool, reinterpret_cast<uint64_t>(*pool));
    return made;
  });
}

}  // namespace

std::span<const DriverFunction> driver_memory_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuMemAlloc_v2, 3020, alloc),
      HEDDLE_DRIVER(cuMemAllocPitch_v2, 3020, alloc_pitch),
      HEDDLE_DRIVER(cuMemFree_v2, 3020, free),
      HEDDLE_DRIVER(cuMemGetInfo_v2, 3020, Same<&cudaMemGetInfo>::call),
      HEDDLE_DRIVER(cuMemGetAddressRange_v2, 3020, address_range),
      HEDDLE_DRIVER(cuMemAllocHost, 2000, Same<&cudaMallocHost>::call),
      HEDDLE_DRIVER(cuMemAllocHost_v2, 3020, Same<&cudaMallocHost>::call),
      HEDDLE_DRIVER(cuMemHostAlloc, 2020, Same<&cudaHostAlloc>::call),
      HEDDLE_DRIVER(cuMemFreeHost, 2000, SameAnywhere<&cudaFreeHost>::call),
      HEDDLE_DRIVER(cuMemHostGetDevicePointer_v2, 3020, Same<&cudaHostGetDevicePointer>::call),
      HEDDLE_DRIVER(cuMemHostGetFlags, 2030, Same<&cudaHostGetFlags>::call),
      HEDDLE_DRIVER(cuMemHostRegister, 4000, Same<&cudaHostRegister>::call),
      HEDDLE_DRIVER(cuMemHostRegister_v2, 6050, Same<&cudaHostRegister>::call),
      HEDDLE_DRIVER(cuMemHostUnregister, 4000, Same<&cudaHostUnregister>::call),
      HEDDLE_DRIVER(cuMemAllocManaged, 6000, alloc_managed),
      HEDDLE_DRIVER(cuMemAdvise, 8000, advise),
      HEDDLE_DRIVER(cuMemAdvise_v2, 12020, advise_v2),
      HEDDLE_DRIVER_PTSZ(cuMemPrefetchAsync, 8000, prefetch),
      HEDDLE_DRIVER_PTSZ(cuMemPrefetchAsync_v2, 12020, prefetch_v2),
      HEDDLE_DRIVER(cuMemRangeGetAttribute, 8000, Same<&cudaMemRangeGetAttribute>::call),
      HEDDLE_DRIVER(cuMemRangeGetAttributes, 8000, Same<&cudaMemRangeGetAttributes>::call),
      HEDDLE_DRIVER_PTSZ(cuMemAllocAsync, 11020, alloc_async),
      HEDDLE_DRIVER_PTSZ(cuMemAllocFromPoolAsync, 11020, alloc_from_pool),
      HEDDLE_DRIVER_PTSZ(cuMemFreeAsync, 11020, free_async),
      HEDDLE_DRIVER(cuMemPoolCreate, 11020, create_pool),
      HEDDLE_DRIVER(cuMemPoolDestroy, 11020, SameAnywhere<&cudaMemPoolDestroy>::call),
      HEDDLE_DRIVER(cuMemPoolTrimTo, 11020, SameAnywhere<&cudaMemPoolTrimTo>::call),
      HEDDLE_DRIVER(cuMemPoolSetAttribute, 11020, SameAnywhere<&cudaMemPoolSetAttribute>::call),
      HEDDLE_DRIVER(cuMemPoolGetAttribute, 11020, SameAnywhere<&cudaMemPoolGetAttribute>::call),
      HEDDLE_DRIVER(cuMemPoolSetAccess, 11020, SameAnywhere<&cudaMemPoolSetAccess>::call),
      HEDDLE_DRIVER(cuMemPoolGetAccess, 11020, SameAnywhere<&cudaMemPoolGetAccess>::call),
      HEDDLE_DRIVER(cuMemGetDefaultMemPool, 13000, SameAnywhere<&cudaMemGetDefaultMemPool>::call),
      HEDDLE_DRIVER(cuMemGetMemPool, 13000, SameAnywhere<&cudaMemGetMemPool>::call),
      HEDDLE_DRIVER(cuMemSetMemPool, 13000, SameAnywhere<&cudaMemSetMemPool>::call),
  };
  return rows;
}

}  // namespace heddle::client
