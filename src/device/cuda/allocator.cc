#include "device/cuda/allocator.h"

#include "core/units.h"
#include "device/cuda/transfer.h"

namespace heddle::cuda {
namespace {

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
  (void)finish_clearing();
  if (stream_) driver_.cuStreamDestroy(stream_);
  driver_.cuDevicePrimaryCtxRelease(device_);
}

Result<CUmemGenericAllocationHandle> Allocator::create(Bytes size, bool on_host) {
  if (size.value == 0 || size.value % kGranule != 0)
    return fail(ErrorCode::kInvalidArgument, "%llu bytes of device memory: a multiple of 2 MiB is wanted",
                number(size));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = on_host ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = on_host ? numa_node() : device_;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0;
  HEDDLE_TRY(driver_.check(driver_.cuMemCreate(&handle, size.value, &properties, 0),
                           stringf("cuMemCreate of %llu bytes", number(size)).c_str()));
  return handle;
}

Result<Fd> Allocator::allocate(Bytes size) {
  const auto handle = create(size, false);
  if (!handle) return tl::unexpected(handle.error());
  const Status cleared = clear(*handle, size);
  auto memory = cleared ? exported(*handle) : tl::unexpected(cleared.error());
  driver_.cuMemRelease(*handle);  // the descriptor keeps the memory
  return memory;
}

Result<Fd> Allocator::allocate_on_host(Bytes size) {
  const auto handle = create(size, true);
  if (!handle) return tl::unexpected(handle.error());
  auto memory = exported(*handle);
  driver_.cuMemRelease(*handle);
  return memory;
}

Result<Fd> Allocator::exported(CUmemGenericAllocationHandle handle) {
  int descriptor = -1;
  HEDDLE_TRY(driver_.check(
      driver_.cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      "cuMemExportToShareableHandle"));
  return Fd(descriptor);
}

// Where the GPU has no node of its own the first one serves.
int Allocator::numa_node() const {
  int node = -1;
  const CUresult known = driver_.cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device_);
  return known == CUDA_SUCCESS && node >= 0 ? node : 0;
}

Result<CUmemGenericAllocationHandle> Allocator::import(const Fd& memory) {
  CUmemGenericAllocationHandle handle = 0;
  HEDDLE_TRY(driver_.check(
      driver_.cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(static_cast<intptr_t>(memory.get())),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
      "cuMemImportFromShareableHandle"));
  return handle;
}

Status Allocator::clear(const Fd& memory, Bytes size) {
  const auto handle = import(memory);
  if (!handle) return tl::unexpected(handle.error());
  Status cleared = clear(*handle, size);
  driver_.cuMemRelease(*handle);
  return cleared;
}

Result<Allocator::Attached> Allocator::attach(const Fd& memory, Bytes size) {
  const auto handle = import(memory);
  if (!handle) return tl::unexpected(handle.error());
  auto attached = attach(*handle, size);
  driver_.cuMemRelease(*handle);  // the mapping keeps the memory
  return attached;
}

Result<Allocator::Attached> Allocator::attach(CUmemGenericAllocationHandle handle, Bytes size) {
  CUdeviceptr at = 0;
  HEDDLE_TRY(driver_.check(driver_.cuMemAddressReserve(&at, size.value, 0, 0, 0), "cuMemAddressReserve"));
  Status mapped = map(at, handle, size.value);
  if (mapped) return Attached(driver_, at, size.value);
  driver_.cuMemAddressFree(at, size.value);
  return tl::unexpected(std::move(mapped).error());
}

Allocator::Attached::~Attached() {
  if (at_ == 0) return;
  driver_->cuMemUnmap(at_, size_);
  driver_->cuMemAddressFree(at_, size_);
}

Status Allocator::copy(const device::CopyShape& shape) {
  CUresult result = enqueue_copy(driver_, stream_, device::CopyDirection::kOnDevice, shape);
  // What was enqueued before a refusal runs, and must not go on behind the answer.
  const CUresult done = driver_.cuStreamSynchronize(stream_);
  if (result == CUDA_SUCCESS) result = done;
  Status copied = driver_.check(result, "copying device memory");
  if (!copied && is_sticky(result)) copied.error().code = ErrorCode::kDeviceFault;
  return copied;
}

Status Allocator::map(CUdeviceptr at, CUmemGenericAllocationHandle handle, uint64_t size) {
  HEDDLE_TRY(driver_.check(driver_.cuMemMap(at, size, 0, handle, 0), "cuMemMap"));
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device_;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  Status allowed = driver_.check(driver_.cuMemSetAccess(at, size, &access, 1), "cuMemSetAccess");
  if (!allowed) driver_.cuMemUnmap(at, size);
  return allowed;
}

Status Allocator::clear(CUmemGenericAllocationHandle handle, Bytes size) {
  auto attached = attach(handle, size);
  if (!attached) return tl::unexpected(std::move(attached).error());
  HEDDLE_TRY(
      driver_.check(driver_.cuMemsetD8Async(attached->address(), 0, size.value, stream_), "clearing device memory"));
  clearing_.push_back(std::move(*attached));
  return {};
}

Status Allocator::finish_clearing() {
  if (clearing_.empty()) return {};
  const CUresult done = driver_.cuStreamSynchronize(stream_);
  clearing_.clear();
  return driver_.check(done, "clearing device memory");
}

Result<Allocator::Usage> Allocator::usage() {
  size_t free = 0, total = 0;
  HEDDLE_TRY(driver_.check(driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo"));
  return Usage{Bytes{total}, Bytes{free}};
}

}  // namespace heddle::cuda
