// What a pointer is (cuPointerGetAttribute).

#include "client/driver/address_range.h"
#include "client/driver/contexts.h"
#include "client/driver/functions.h"

namespace heddle::client {
namespace {

enum Attribute : int {
  kContext = 1,
  kMemoryType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kSyncMemops = 6,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kIsIpcCapable = 10,
  kRangeStart = 11,
  kRangeSize = 12,
  kMapped = 13,
  kAllowedHandleTypes = 14,
  kIsRdmaCapable = 15,
  kAccessFlags = 16,
  kMempoolHandle = 17,
  kMappingSize = 18,
  kMappingBase = 19,
  kMemoryBlockId = 20,
  kIsDecompressCapable = 21,
};
constexpr uint64_t kReadWrite = 3;  // CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE

struct Asked {
  CUdeviceptr address;
  AddressRange range;
};

template <class Value>
void put(void* to, Value value) {
  *static_cast<Value*>(to) = value;
}

uint64_t memory_type(const AddressRange& range) {
  return range.kind == AddressRange::Kind::kHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUcontext context_of(const AddressRange& range) {
  Context* const owner = owner_of(Owned::kMemory, range.address);
  return owner ? owner : &primary_context(range.device);
}

// Values have CUDA's sizes: pointers and sizes 8 bytes, numbers 4, yes and no 1 (kIsManaged 4).
Done tell(const Asked& asked, int attribute, void* to) {
  const AddressRange& range = asked.range;
  switch (attribute) {
    case kContext:
      put<CUcontext>(to, context_of(range));
      return {};
    case kMemoryType:
      put<unsigned>(to, static_cast<unsigned>(memory_type(range)));
      return {};
    case kDevicePointer:
      if (range.seen == 0) return refuse(cudaErrorInvalidValue);
      put<CUdeviceptr>(to, range.seen);
      return {};
    case kHostPointer:
      if (range.host == 0) return refuse(cudaErrorInvalidValue);
      put<uint64_t>(to, range.host);
      return {};
    case kBufferId:  // addresses are used again late (link/arena.h), and a buffer has one for life
    case kMemoryBlockId:
    case kRangeStart:
    case kMappingBase:
      put<uint64_t>(to, range.address);
      return {};
    case kRangeSize:
    case kMappingSize:
      put<uint64_t>(to, range.bytes);
      return {};
    case kIsManaged:
      put<unsigned>(to, range.kind == AddressRange::Kind::kManaged);
      return {};
    case kDeviceOrdinal:
      put<int>(to, range.device);
      return {};
    case kMapped:
      put<bool>(to, range.seen != 0);
      return {};
    case kSyncMemops:
    case kIsIpcCapable:
    case kIsRdmaCapable:
    case kIsDecompressCapable:
      put<bool>(to, false);
      return {};
    case kAllowedHandleTypes:
    case kMempoolHandle:
      put<uint64_t>(to, 0);
      return {};
    case kAccessFlags:
      put<unsigned>(to, kReadWrite);
      return {};
    default:
      return refuse(cudaErrorInvalidValue);
  }
}

CUresult attribute(void* to, int attribute, CUdeviceptr address) {
  return in_context([&]() -> Done {
    if (!to) return refuse(cudaErrorInvalidValue);
    const auto range = range_at(address);
    return range ? tell({address, *range}, attribute, to) : refuse(cudaErrorInvalidValue);
  });
}

// The value of an attribute that does not apply to a pointer.
void put_nothing(int attribute, void* to) {
  switch (attribute) {
    case kMemoryType:
    case kIsManaged:
    case kAccessFlags:
      return put<unsigned>(to, 0);
    case kDeviceOrdinal:
      return put<int>(to, -2);
    case kSyncMemops:
    case kMapped:
    case kIsIpcCapable:
    case kIsRdmaCapable:
    case kIsDecompressCapable:
      return put<bool>(to, false);
    default:
      return put<uint64_t>(to, 0);
  }
}

// Answers for any pointer: what does not apply is zero.
CUresult attributes(unsigned count, const int* attributes, void** to, CUdeviceptr address) {
  return in_context([&]() -> Done {
    if (!attributes || !to || count == 0) return refuse(cudaErrorInvalidValue);
    const auto range = range_at(address);
    for (unsigned i = 0; i < count; ++i) {
      if (!to[i]) return refuse(cudaErrorInvalidValue);
      if (!range || !tell({address, *range}, attributes[i], to[i])) put_nothing(attributes[i], to[i]);
    }
    return {};
  });
}

// Copies wait for what they copy wherever CUDA says so; there is no other kind to turn off.
CUresult set_attribute(const void* value, int attribute, CUdeviceptr address) {
  return in_context([&]() -> Done {
    if (!value || attribute != kSyncMemops || !range_at(address)) return refuse(cudaErrorInvalidValue);
    if (*static_cast<const unsigned*>(value) != 0)
      return refuse(cudaErrorNotSupported, "CU_POINTER_ATTRIBUTE_SYNC_MEMOPS is not supported");
    return {};
  });
}

}  // namespace

std::span<const DriverFunction> driver_pointer_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuPointerGetAttribute, 4000, attribute),
      HEDDLE_DRIVER(cuPointerGetAttributes, 7000, attributes),
      HEDDLE_DRIVER(cuPointerSetAttribute, 6000, set_attribute),
  };
  return rows;
}

}  // namespace heddle::client
