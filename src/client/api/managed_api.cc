// What programs say of managed memory in advance. Where it lives on the device (memory/managed_memory.h), prefetches
// move it; what lies on the host stays there.
//
// CUDA 13 gave the functions' first names to those that take a cudaMemLocation.

#include "client/api/managed_calls.h"
#include "client/api/submit.h"

namespace heddle::client {
namespace {

enum LocationType : int { kDevice = 1, kHost = 2, kHostNuma = 3, kHostNumaCurrent = 4 };
enum Advice : int {
  kSetReadMostly = 1,
  kUnsetReadMostly = 2,
  kSetPreferredLocation = 3,
  kUnsetPreferredLocation = 4,
  kSetAccessedBy = 5,
  kUnsetAccessedBy = 6,
};
enum RangeAttribute : int {
  kReadMostly = 1,
  kPreferredLocation = 2,
  kAccessedBy = 3,
  kLastPrefetchLocation = 4,
  kPreferredLocationType = 5,
  kPreferredLocationId = 6,
  kLastPrefetchLocationType = 7,
  kLastPrefetchLocationId = 8,
};
constexpr int kCpu = -1, kInvalidDevice = -2;

Done check_range(const void* pointer, size_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (auto session = runtime().session(); !session) return tl::unexpected(std::move(session).error());
  if (bytes == 0 || !runtime().in_window(address)) return refuse(cudaErrorInvalidValue);
  const auto buffer = runtime().managed_memory().find_anywhere(address);
  return buffer && bytes <= buffer->address + buffer->bytes - address ? Done{} : refuse(cudaErrorInvalidValue);
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

// As the first functions named places.
int number_of(const HintedPlace& place) {
  return place.type == 0 ? kInvalidDevice : place.type == kDevice ? place.id : kCpu;
}

void apply(int advice, const cudaMemLocation& location, ManagedHint& hint) {
  const HintedPlace place{location.type, location.id};
  switch (advice) {
    case kSetReadMostly:
    case kUnsetReadMostly:
      hint.read_mostly = advice == kSetReadMostly;
      return;
    case kSetPreferredLocation:
    case kUnsetPreferredLocation:
      hint.preferred = advice == kSetPreferredLocation ? place : HintedPlace{};
      return;
    case kSetAccessedBy:
      hint.accessed_by.insert(number_of(place));
      return;
    case kUnsetAccessedBy:
      hint.accessed_by.erase(number_of(place));
      return;
  }
}

cudaError_t advise(const void* pointer, size_t bytes, int advice, const cudaMemLocation& location) {
  return answer([&] { return advise_managed(pointer, bytes, advice, location); });
}

Done check_prefetch(const void* pointer, size_t bytes, const cudaMemLocation& location) {
  HEDDLE_ANSWER(check_range(pointer, bytes));
  return check_location(location);
}

// To the host when what was called so far is done; the call waits for that, which it need not natively.
Done move(const StreamRef& stream, uint64_t address, size_t bytes, const cudaMemLocation& location) {
  runtime().managed_hints.change(address, bytes, [&](ManagedHint& hint) {
    hint.prefetched = {location.type, location.id};
  });
  ManagedMemory& managed = runtime().managed_memory();
  if (!managed.find(address)) return {};  // it stays where it is
  return location.type == kDevice ? managed.before({*stream.device, stream.slot}, address, bytes, ManagedAccess::kRead)
                                  : managed.prefetch_to_host(address, bytes);
}

cudaError_t prefetch(const void* pointer, size_t bytes, const cudaMemLocation& location, unsigned flags,
                     cudaStream_t stream) {
  return answer([&] { return prefetch_managed(pointer, bytes, location, flags, stream); });
}

// What is said of the whole range: a place or a device that is not said of all of it is none.
ManagedHint said_of_all(uint64_t address, size_t bytes) {
  std::optional<ManagedHint> all;
  runtime().managed_hints.for_each(address, bytes, [&](const ManagedHint& hint) {
    if (!all) all = hint;
    all->read_mostly &= hint.read_mostly;
    if (all->preferred != hint.preferred) all->preferred = {};
    if (all->prefetched != hint.prefetched) all->prefetched = {};
    std::erase_if(all->accessed_by, [&](int device) { return !hint.accessed_by.contains(device); });
  });
  return all.value_or(ManagedHint{});
}

Answer<int> number_said(const ManagedHint& said, int attribute) {
  switch (attribute) {
    case kReadMostly:
      return said.read_mostly ? 1 : 0;
    case kPreferredLocation:
      return number_of(said.preferred);
    case kLastPrefetchLocation:
      return number_of(said.prefetched);
    case kPreferredLocationType:
      return said.preferred.type;
    case kPreferredLocationId:
      return said.preferred.id;
    case kLastPrefetchLocationType:
      return said.prefetched.type;
    case kLastPrefetchLocationId:
      return said.prefetched.id;
  }
  return refuse(cudaErrorInvalidValue);
}

Done get_range_attribute(void* data, size_t size, int attribute, const void* pointer, size_t bytes) {
  HEDDLE_ANSWER(check_range(pointer, bytes));
  const bool lists = attribute == kAccessedBy;
  if (!data || (lists ? size == 0 || size % sizeof(int) != 0 : size != sizeof(int)))
    return refuse(cudaErrorInvalidValue);
  const ManagedHint said = said_of_all(reinterpret_cast<uint64_t>(pointer), bytes);
  auto* const values = static_cast<int*>(data);
  if (!lists) {
    const auto value = number_said(said, attribute);
    if (!value) return tl::unexpected(value.error());
    *values = *value;
    return {};
  }
  auto device = said.accessed_by.begin();
  for (size_t i = 0; i < size / sizeof(int); ++i)
    values[i] = device != said.accessed_by.end() ? *device++ : kInvalidDevice;
  return {};
}

}  // namespace

cudaMemLocation managed_location(int device) {
  return device == kCpu ? cudaMemLocation{kHost, 0} : cudaMemLocation{kDevice, device};
}

Done advise_managed(const void* pointer, size_t bytes, int advice, const cudaMemLocation& location) {
  if (advice < kSetReadMostly || advice > kUnsetAccessedBy) return refuse(cudaErrorInvalidValue);
  HEDDLE_ANSWER(check_range(pointer, bytes));
  const bool names_place = advice == kSetPreferredLocation || advice == kSetAccessedBy || advice == kUnsetAccessedBy;
  if (names_place) HEDDLE_ANSWER(check_location(location));
  runtime().managed_hints.change(reinterpret_cast<uint64_t>(pointer), bytes,
                                 [&](ManagedHint& hint) { apply(advice, location, hint); });
  return {};
}

Done prefetch_managed(const void* pointer, size_t bytes, const cudaMemLocation& location, unsigned flags,
                      cudaStream_t stream) {
  if (flags != 0) return refuse(cudaErrorInvalidValue);
  HEDDLE_ANSWER(check_prefetch(pointer, bytes, location));
  auto resolved = enter_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  HEDDLE_ANSWER(captures().refuse_on(*resolved));
  return move(*resolved, reinterpret_cast<uint64_t>(pointer), bytes, location);
}

HEDDLE_EXPORT cudaError_t cudaMemRangeGetAttribute(void* data, size_t size, int attribute, const void* pointer,
                                                   size_t bytes) {
  return answer([&] { return get_range_attribute(data, size, attribute, pointer, bytes); });
}

HEDDLE_EXPORT cudaError_t cudaMemRangeGetAttributes(void** data, size_t* sizes, int* attributes, size_t count,
                                                    const void* pointer, size_t bytes) {
  return answer([&]() -> Done {
    if (!data || !sizes || !attributes || count == 0) return refuse(cudaErrorInvalidValue);
    for (size_t i = 0; i < count; ++i)
      HEDDLE_ANSWER(get_range_attribute(data[i], sizes[i], attributes[i], pointer, bytes));
    return {};
  });
}

#if HEDDLE_CUDART_MAJOR == 12
HEDDLE_EXPORT cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, int advice, int device) {
  return advise(pointer, bytes, advice, managed_location(device));
}

HEDDLE_EXPORT cudaError_t cudaMemAdvise_v2(const void* pointer, size_t bytes, int advice, cudaMemLocation location) {
  return advise(pointer, bytes, advice, location);
}

HEDDLE_EXPORT cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device, cudaStream_t stream) {
  return prefetch(pointer, bytes, managed_location(device), 0, stream);
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
