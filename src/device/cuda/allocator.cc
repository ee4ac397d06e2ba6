#include "device/cuda/allocator.h"

#include "core/units.h"

namespace heddle::cuda {
namespace {

constexpr uint64_t kGranule = 2 * kMiB;

unsigned long long number(Bytes bytes) {
  return bytes.value;
}

}  // namespace

Result<std::unique_ptr<Allocator>> Allocator::open(uint32_t ordinal) {
  const auto driver = Driver::load();
  if (!driver) return tl::unexpected(driver.error());
  std::unique_ptr<Allocator> allocator(new Allocator(*driver));
  HEDDLE_TRY(allocator->build(ordinal));
  return allocator;
}

Status Allocator::build(uint32_t ordinal) {
  HEDDLE_TRY(driver_.check(driver_.cuDeviceGet(&device_, static_cast<int>(ordinal)), "cuDeviceGet"));
  HEDDLE_TRY(driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain"));
  HEDDLE_TRY(driver_.check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"));
  return driver_.check(driver_.cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0),
                       "cuStreamCreateWithPriority");
}

Allocator::~Allocator() {
  if (!context_) return;
  if (scratch_) driver_.cuMemAddressFree(scratch_, scratch_bytes_);
  if (stream_) driver_.cuStreamDestroy(stream_);
  driver_.cuDevicePrimaryCtxRelease(device_);
}

Result<CUmemGenericAllocationHandle> Allocator::create(Bytes size) {
  if (size.value == 0 || size.value % kGranule != 0)
    return fail(ErrorCode::kInvalidArgument, "%llu bytes of device memory: a multiple of 2 MiB is wanted",
                number(size));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device_;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0;
  HEDDLE_TRY(driver_.check(driver_.cuMemCreate(&handle, size.value, &properties, 0),
                           stringf("cuMemCreate of %llu bytes", number(size)).c_str()));
  return handle;
}

Result<Fd> Allocator::allocate(Bytes size) {
  const auto handle = create(size);
  if (!handle) return tl::unexpected(handle.error());
  Status status = clear(*handle, size);
  int descriptor = -1;
  if (status)
    status = driver_.check(
        driver_.cuMemExportToShareableHandle(&descriptor, *handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "cuMemExportToShareableHandle");
  driver_.cuMemRelease(*handle);  // the descriptor keeps the memory
  if (!status) return tl::unexpected(std::move(status).error());
  return Fd(descriptor);
}

Status Allocator::clear(const Fd& memory, Bytes size) {
  CUmemGenericAllocationHandle handle = 0;
  HEDDLE_TRY(driver_.check(
      driver_.cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(static_cast<intptr_t>(memory.get())),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
      "cuMemImportFromShareableHandle"));
  Status cleared = clear(handle, size);
  driver_.cuMemRelease(handle);
  return cleared;
}

Status Allocator::grow_scratch(uint64_t bytes) {
  if (bytes <= scratch_bytes_) return {};
  if (scratch_) driver_.cuMemAddressFree(scratch_, scratch_bytes_);
  scratch_ = 0;
  scratch_bytes_ = 0;
  HEDDLE_TRY(driver_.check(driver_.cuMemAddressReserve(&scratch_, bytes, 0, 0, 0), "cuMemAddressReserve"));
  scratch_bytes_ = bytes;
  return {};
}

Result<CUdeviceptr> Allocator::map(CUmemGenericAllocationHandle handle, Bytes size) {
  HEDDLE_TRY(grow_scratch(size.value));
  HEDDLE_TRY(driver_.check(driver_.cuMemMap(scratch_, size.value, 0, handle, 0), "cuMemMap"));
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device_;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const Status allowed = driver_.check(driver_.cuMemSetAccess(scratch_, size.value, &access, 1), "cuMemSetAccess");
  if (allowed) return scratch_;
  driver_.cuMemUnmap(scratch_, size.value);
  return tl::unexpected(allowed.error());
}

Status Allocator::clear(CUmemGenericAllocationHandle handle, Bytes size) {
  const auto at = map(handle, size);
  if (!at) return tl::unexpected(at.error());
  CUresult result = driver_.cuMemsetD8Async(*at, 0, size.value, stream_);
  if (result == CUDA_SUCCESS) result = driver_.cuStreamSynchronize(stream_);
  driver_.cuMemUnmap(*at, size.value);
  return driver_.check(result, "clearing device memory");
}

Result<Allocator::Usage> Allocator::usage() {
  size_t free = 0, total = 0;
  HEDDLE_TRY(driver_.check(driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo"));
  return Usage{Bytes{total}, Bytes{free}};
}

}  // namespace heddle::cuda
