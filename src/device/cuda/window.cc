#include "device/cuda/window.h"

#include <sys/mman.h>

#include <mutex>

namespace heddle::cuda {
namespace {

constexpr uint64_t kGranule = 2 * kMiB;

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

unsigned long long number(uint64_t value) {
  return value;
}

// Holds addresses without memory behind them, as the caller did.
bool hold(uint64_t base, uint64_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  return ::mmap(pointer(base), bytes, PROT_NONE, kFlags, -1, 0) == pointer(base);
}

// A process has its addresses once, however many contexts it opens.
struct Ranges {
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<AddressRange>> by_base;
};
Ranges& ranges() {
  static Ranges all;
  return all;
}

}  // namespace

LiftedHold::LiftedHold(uint64_t base, uint64_t bytes) : base_(base), bytes_(bytes) {
  std::lock_guard lock(ranges().mutex);
  const bool reserved = !ranges().by_base[base].expired();
  lifted_ = !reserved && ::munmap(pointer(base), bytes) == 0;
}

LiftedHold::~LiftedHold() {
  if (lifted_) hold(base_, bytes_);
}

Result<std::shared_ptr<AddressRange>> AddressRange::reserve(const Driver& driver, LiftedHold& hold) {
  std::lock_guard lock(ranges().mutex);
  const uint64_t base = hold.base_, bytes = hold.bytes_;
  if (auto existing = ranges().by_base[base].lock(); existing && existing->bytes_ == bytes) return existing;
  CUdeviceptr got = 0;
  HEDDLE_TRY(driver.check(driver.cuMemAddressReserve(&got, bytes, 0, base, 0), "cuMemAddressReserve"));
  if (got != base) {
    driver.cuMemAddressFree(got, bytes);
    return fail(ErrorCode::kLimitExceeded, "window of %llu bytes at 0x%llx: the driver gives 0x%llx instead",
                number(bytes), number(base), number(got));
  }
  hold.lifted_ = false;
  std::shared_ptr<AddressRange> range(new AddressRange(driver, base, bytes));
  ranges().by_base[base] = range;
  return range;
}

AddressRange::~AddressRange() {
  driver_.cuMemAddressFree(base_, bytes_);
  hold(base_, bytes_);
}

Window::~Window() {
  for (const auto& [address, range] : mapped_) (void)unmap_one(address, range);
  for (const auto& [address, pinnable] : pinnable_) {
    if (pinnable.pin == Pin::kPinned) driver_.cuMemHostUnregister(pointer(address));
  }
}

void Window::abandon() {
  mapped_.clear();
  unregistered_.clear();
  pinnable_.clear();
  // Never destroyed: the driver may still use the addresses.
  new std::shared_ptr<AddressRange>(std::move(range_));  // NOLINT(cppcoreguidelines-owning-memory)
}

Status Window::check_range(uint64_t address, uint64_t bytes) const {
  const uint64_t offset = address - shape_.base;
  if (bytes > 0 && address % kGranule == 0 && bytes % kGranule == 0 && offset < shape_.bytes &&
      bytes <= shape_.bytes - offset)
    return {};
  return fail(ErrorCode::kInvalidArgument,
              "mapping of %llu bytes at 0x%llx: must be in steps of 2 MiB and in the window of %llu bytes at 0x%llx",
              number(bytes), number(address), number(shape_.bytes), number(shape_.base));
}

Status Window::map(uint64_t address, Bytes size, const Fd& memory, bool host) {
  HEDDLE_TRY(check_range(address, size.value));
  const bool host_part = on_host(address);
  if (host != host_part || (!host && address - shape_.base + size.value > shape_.device_bytes))
    return fail(ErrorCode::kInvalidArgument, "0x%llx is not in the %s part of the window", number(address),
                host ? "host" : "device");
  const auto behind = mapped_.lower_bound(address);
  const bool overlaps_next = behind != mapped_.end() && behind->first < address + size.value;
  const bool overlaps_previous =
      behind != mapped_.begin() && std::prev(behind)->first + std::prev(behind)->second.bytes > address;
  if (overlaps_next || overlaps_previous)
    return fail(ErrorCode::kInvalidArgument, "there is memory at 0x%llx already", number(address));
  HEDDLE_TRY(host ? map_host(address, size.value, memory) : map_device(address, size.value, memory));
  mapped_[address] = {size.value, host};
  if (host) unregistered_.insert(address);
  return {};
}

// The mapping keeps the memory alive; the handle is given back at once.
Status Window::map_device(uint64_t address, uint64_t bytes, const Fd& memory) {
  CUmemGenericAllocationHandle handle = 0;
  HEDDLE_TRY(driver_.check(driver_.cuMemImportFromShareableHandle(&handle, pointer(static_cast<uint64_t>(memory.get())),
                                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                           "cuMemImportFromShareableHandle"));
  const CUresult mapped = driver_.cuMemMap(address, bytes, 0, handle, 0);
  driver_.cuMemRelease(handle);
  if (mapped != CUDA_SUCCESS)
    return driver_.check(mapped, stringf("cuMemMap of %llu bytes at 0x%llx", number(bytes), number(address)).c_str());
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device_;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CUresult allowed = driver_.cuMemSetAccess(address, bytes, &access, 1);
  if (allowed != CUDA_SUCCESS) driver_.cuMemUnmap(address, bytes);
  return driver_.check(allowed, "cuMemSetAccess");
}

Status Window::map_host(uint64_t address, uint64_t bytes, const Fd& memory) {
  const auto behind = sealed_size(memory);
  if (!behind) return tl::unexpected(behind.error());
  if (behind->value < bytes)
    return fail(ErrorCode::kInvalidArgument, "mapping of %llu bytes at 0x%llx: the memory has %llu", number(bytes),
                number(address), number(behind->value));
  if (::mmap(pointer(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory.get(), 0) == MAP_FAILED)
    return fail_errno(-1, "mapping %llu bytes at 0x%llx", number(bytes), number(address));
  return {};
}

CUresult Window::register_mapped() {
  while (!unregistered_.empty()) {
    const uint64_t address = *unregistered_.begin();
    Range& range = mapped_.at(address);
    constexpr unsigned kFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    const CUresult result = driver_.cuMemHostRegister(pointer(address), range.bytes, kFlags);
    if (result != CUDA_SUCCESS) return result;
    range.registered = true;
    unregistered_.erase(address);
  }
  return CUDA_SUCCESS;
}

Status Window::unmap(uint64_t address, Bytes size) {
  HEDDLE_TRY(check_range(address, size.value));
  // Whole mappings only: the driver unmaps what it mapped.
  uint64_t at = address;
  while (at < address + size.value) {
    const auto found = mapped_.find(at);
    if (found == mapped_.end() || found->second.bytes > address + size.value - at)
      return fail(ErrorCode::kInvalidArgument, "the %llu bytes at 0x%llx are not all mapped, or only part of a mapping",
                  number(size.value), number(address));
    at += found->second.bytes;
  }
  Status status;
  while (address < at) {
    const auto found = mapped_.find(address);
    const Range range = found->second;
    mapped_.erase(found);
    if (const Status one = unmap_one(address, range); !one) status = one;
    address += range.bytes;
  }
  return status;
}

Status Window::unmap_one(uint64_t address, const Range& range) {
  if (!range.host) return driver_.check(driver_.cuMemUnmap(address, range.bytes), "cuMemUnmap");
  unregistered_.erase(address);
  const CUresult result = range.registered ? driver_.cuMemHostUnregister(pointer(address)) : CUDA_SUCCESS;
  ::munmap(pointer(address), range.bytes);
  hold(address, range.bytes);
  return driver_.check(result, "cuMemHostUnregister");
}

bool Window::covered(uint64_t address, uint64_t bytes) const {
  uint64_t at = address;
  const uint64_t end = address + bytes;
  auto next = mapped_.upper_bound(at);
  if (next == mapped_.begin()) return false;
  for (auto each = std::prev(next); at < end; ++each) {
    if (each == mapped_.end() || each->first > at || each->first + each->second.bytes <= at) return false;
    at = each->first + each->second.bytes;
  }
  return true;
}

bool Window::accessible(uint64_t address, uint64_t bytes) const {
  if (bytes == 0) return true;
  const uint64_t last = address + (bytes - 1);
  const bool wraps = last < address;
  const bool touches = address < shape_.base + shape_.bytes && (wraps || last >= shape_.base);
  return !touches || (!wraps && covered(address, bytes));
}

void Window::unpin(uint64_t address) {
  const auto found = pinnable_.find(address);
  if (found == pinnable_.end()) return;
  if (found->second.pin == Pin::kPinned) driver_.cuMemHostUnregister(pointer(address));
  found->second.pin = Pin::kNotYet;
}

bool Window::pinned(uint64_t address, uint64_t bytes) {
  if (address - shape_.base < shape_.bytes) return true;  // accessible() and register_mapped() have seen to that
  const auto behind = pinnable_.upper_bound(address);
  if (behind == pinnable_.begin()) return false;
  const auto found = std::prev(behind);
  Pinnable& pinnable = found->second;
  if (address - found->first >= pinnable.bytes || bytes > pinnable.bytes - (address - found->first)) return false;
  if (pinnable.pin == Pin::kNotYet) {
    const CUresult result =
        driver_.cuMemHostRegister(pointer(found->first), pinnable.bytes, CU_MEMHOSTREGISTER_PORTABLE);
    pinnable.pin = result == CUDA_SUCCESS ? Pin::kPinned : Pin::kRefused;
  }
  return pinnable.pin == Pin::kPinned;
}

}  // namespace heddle::cuda
