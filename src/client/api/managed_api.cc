// What programs say of managed memory in advance. It lies on the host, where kernels and the program reach it at any
// time: nothing is to be moved, so hints are taken note of by checking them.
//
// CUDA 13 gave the functions' first names to those that take a cudaMemLocation.

#include "client/api/submit.h"
#include "client/memory/host_memory.h"

namespace heddle::client {
namespace {

enum LocationType : int { kDevice = 1, kHost = 2, kHostNuma = 3, kHostNumaCurrent = 4 };
enum Advice : int { kSetReadMostly = 1, kSetPreferredLocation = 3, kSetAccessedBy = 5, kUnsetAccessedBy = 6 };

// As CUDA 12's first functions have it: a device's number, or -1 for the host.
[[maybe_unused]] cudaMemLocation location_of(int device) {
  return device == -1 ? cudaMemLocation{kHost, 0} : cudaMemLocation{kDevice, device};
}

Done check_range(const void* pointer, size_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (auto session = runtime().session(); !session) return tl::unexpected(std::move(session).error());
  if (bytes == 0 || !runtime().in_window(address)) return refuse(cudaErrorInvalidValue);
  const auto buffer = runtime().host_memory().find(address);
  const bool managed = buffer && (buffer->flags & HostMemory::kManaged);
  return managed && bytes <= buffer->address + buffer->bytes - address ? Done{} : refuse(cudaErrorInvalidValue);
}

Done check_location(const cudaMemLocation& location) {
  auto session = runtime().session();
  if (!session) return tl::unexpected(std::move(session).error());
  const auto devices = static_cast<int>((*session)->welcome().device_count);
  const bool known = location.type == kDevice ? location.id >= 0 && location.id < devices
                                              : location.type == kHost || location.type == kHostNumaCurrent ||
                                                    (location.type == kHostNuma && location.id >= 0);
  return known ? Done{} : refuse(cudaErrorInvalidDevice);
}

cudaError_t advise(const void* pointer, size_t bytes, int advice, const cudaMemLocation& location) {
  return answer([&]() -> Done {
    if (advice < kSetReadMostly || advice > kUnsetAccessedBy) return refuse(cudaErrorInvalidValue);
    HEDDLE_ANSWER(check_range(pointer, bytes));
    const bool names_place = advice == kSetPreferredLocation || advice == kSetAccessedBy || advice == kUnsetAccessedBy;
    return names_place ? check_location(location) : Done{};
  });
}

Done check_prefetch(const void* pointer, size_t bytes, const cudaMemLocation& location) {
  HEDDLE_ANSWER(check_range(pointer, bytes));
  return check_location(location);
}

// What comes next in the stream finds the memory where it is.
cudaError_t prefetch(const void* pointer, size_t bytes, const cudaMemLocation& location, unsigned flags,
                     cudaStream_t stream) {
  return answer([&]() -> Done {
    if (flags != 0) return refuse(cudaErrorInvalidValue);
    HEDDLE_ANSWER(check_prefetch(pointer, bytes, location));
    auto resolved = enter_stream(stream);
    if (!resolved) return tl::unexpected(std::move(resolved).error());
    return captures().refuse_on(*resolved);
  });
}

}  // namespace

#if HEDDLE_CUDART_MAJOR == 12
HEDDLE_EXPORT cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, int advice, int device) {
  return advise(pointer, bytes, advice, location_of(device));
}

HEDDLE_EXPORT cudaError_t cudaMemAdvise_v2(const void* pointer, size_t bytes, int advice, cudaMemLocation location) {
  return advise(pointer, bytes, advice, location);
}

HEDDLE_EXPORT cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device, cudaStream_t stream) {
  return prefetch(pointer, bytes, location_of(device), 0, stream);
}

HEDDLE_EXPORT cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, size_t bytes, int device,
                                                    cudaStream_t stream) {
  const PerThreadDefault scope;
  return cudaMemPrefetchAsync(pointer, bytes, device, stream);
}

HEDDLE_EXPORT cudaError_t cudaMemPrefetchAsync_v2(const void* pointer, size_t bytes, cudaMemLocation location,
                                                  unsigned flags, cudaStream_t stream) {
  return prefetch(pointer, bytes, location, flags, stream);
}
#else
HEDDLE_EXPORT cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, int advice, cudaMemLocation location) {
  return advise(pointer, bytes, advice, location);
}

HEDDLE_EXPORT cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation location,
                                               unsigned flags, cudaStream_t stream) {
  return prefetch(pointer, bytes, location, flags, stream);
}

HEDDLE_EXPORT cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, size_t bytes, cudaMemLocation location,
                                                    unsigned flags, cudaStream_t stream) {
  const PerThreadDefault scope;
  return prefetch(pointer, bytes, location, flags, stream);
}
#endif

}  // namespace heddle::client
