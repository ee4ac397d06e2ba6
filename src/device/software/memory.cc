#include "device/software/memory.h"

#include <sys/mman.h>

namespace heddle::software {
namespace {

// Addresses set aside for module variables; only what modules use costs memory.
constexpr uint64_t kVariableWindow = 16 * kGiB;
constexpr uint64_t kGranule = MemoryMap::kGranule;
// A line each, so that launches do not disturb each other; as many as a granule holds.
constexpr uint64_t kWorkspaceBytes = 64, kWorkspaces = kGranule / kWorkspaceBytes;

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

// `bytes` and `window` are at least 1; a range that runs past the end of all addresses ends there.
bool overlaps(uint64_t address, uint64_t bytes, uint64_t base, uint64_t window) {
  uint64_t last = address + (bytes - 1);
  if (last < address) last = UINT64_MAX;
  return address <= base + (window - 1) && last >= base;
}

// Right behind the window or before it, so that a session's next worker has its variables where they were; anywhere,
// where both are taken.
void* reserve_variables(uint64_t window_base, uint64_t window_bytes, size_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  for (uint64_t wanted : {round_up(window_base + window_bytes, kGranule), window_base - bytes}) {
    void* reserved = mmap(pointer(wanted), bytes, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
    if (reserved == pointer(wanted)) return reserved;
    if (reserved != MAP_FAILED) munmap(reserved, bytes);  // a kernel that does not know the flag
  }
  return mmap(nullptr, bytes, PROT_NONE, kFlags, -1, 0);
}

}  // namespace

DeviceMemory::DeviceMemory(uint64_t base, uint64_t bytes, Mapping variables, MemoryMap map)
    : base_(base), bytes_(bytes), variables_(std::move(variables)), map_(std::move(map)) {
  variables_base_ = round_up(reinterpret_cast<uintptr_t>(variables_.data()), kGranule);
}

Result<DeviceMemory> DeviceMemory::create(uint64_t window_base, uint64_t window_bytes) {
  size_t reserved = kVariableWindow + kGranule;
  void* variables = reserve_variables(window_base, window_bytes, reserved);
  if (variables == MAP_FAILED) return fail_errno(-1, "reserving %zu bytes of addresses for module variables", reserved);
  Mapping owned(variables, reserved);
  uint64_t aligned = round_up(reinterpret_cast<uintptr_t>(variables), kGranule);
  auto map = MemoryMap::create({{window_base, window_bytes}, {aligned, kVariableWindow}});
  if (!map) return tl::unexpected(map.error());
  return DeviceMemory(window_base, window_bytes, std::move(owned), std::move(*map));
}

// What is still mapped in the window is taken out: the window outlives this object, the segments behind it must not.
DeviceMemory::~DeviceMemory() {
  if (!variables_) return;  // moved from
  for (uint64_t at = 0; at < bytes_; at += kGranule) {
    if (map_.contains(base_ + at, kGranule)) (void)unmap(base_ + at, Bytes{kGranule});
  }
}

Status DeviceMemory::check_range(uint64_t address, uint64_t bytes) const {
  uint64_t offset = address - base_;
  if (bytes > 0 && address % kGranule == 0 && bytes % kGranule == 0 && offset < bytes_ && bytes <= bytes_ - offset)
    return {};
  return fail(ErrorCode::kInvalidArgument,
              "mapping of %llu bytes at 0x%llx: must be in steps of 2 MiB and in the window of %llu bytes at 0x%llx",
              static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address),
              static_cast<unsigned long long>(bytes_), static_cast<unsigned long long>(base_));
}

bool DeviceMemory::any_mapped(uint64_t address, uint64_t bytes) const {
  for (uint64_t at = 0; at < bytes; at += kGranule) {
    if (map_.contains(address + at, kGranule)) return true;
  }
  return false;
}

Status DeviceMemory::map(uint64_t address, Bytes size, const Fd& memory) {
  HEDDLE_TRY(check_range(address, size.value));
  if (any_mapped(address, size.value))
    return fail(ErrorCode::kInvalidArgument, "there is memory at 0x%llx already",
                static_cast<unsigned long long>(address));
  auto behind = sealed_size(memory);
  if (!behind) return tl::unexpected(behind.error());
  if (*behind < size)
    return fail(ErrorCode::kInvalidArgument, "mapping of %llu bytes at 0x%llx: the memory has %llu",
                static_cast<unsigned long long>(size.value), static_cast<unsigned long long>(address),
                static_cast<unsigned long long>(behind->value));
  void* mapped = mmap(pointer(address), size.value, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory.get(), 0);
  if (mapped == MAP_FAILED)
    return fail_errno(-1, "mapping %llu bytes at 0x%llx", static_cast<unsigned long long>(size.value),
                      static_cast<unsigned long long>(address));
  return map_.add(address, size.value);
}

Status DeviceMemory::unmap(uint64_t address, Bytes size) {
  HEDDLE_TRY(check_range(address, size.value));
  if (!map_.contains(address, size.value))
    return fail(ErrorCode::kInvalidArgument, "not all of the %llu bytes at 0x%llx is mapped",
                static_cast<unsigned long long>(size.value), static_cast<unsigned long long>(address));
  HEDDLE_TRY(map_.remove(address, size.value));
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap(pointer(address), size.value, PROT_NONE, flags, -1, 0) == MAP_FAILED)
    return fail_errno(-1, "unmapping %llu bytes at 0x%llx", static_cast<unsigned long long>(size.value),
                      static_cast<unsigned long long>(address));
  return {};
}

// Whole granules, from the start of the space for variables or from its end.
Result<uint64_t> DeviceMemory::open_up(uint64_t bytes, const char* what, bool from_start) {
  const uint64_t used = variables_used_ + own_used_, room = round_up(bytes, kGranule);
  if (bytes > kVariableWindow - kGranule || room > kVariableWindow - used)
    return fail(ErrorCode::kOutOfMemory, "%llu bytes %s: %llu of %llu are in use",
                static_cast<unsigned long long>(bytes), what, static_cast<unsigned long long>(used),
                static_cast<unsigned long long>(kVariableWindow));
  const uint64_t address = variables_base_ + (from_start ? variables_used_ : kVariableWindow - own_used_ - room);
  if (room > 0 && mprotect(pointer(address), room, PROT_READ | PROT_WRITE) != 0)
    return fail(ErrorCode::kOutOfMemory, "%llu bytes %s: the host has no memory for them",
                static_cast<unsigned long long>(bytes), what);
  HEDDLE_TRY(map_.add(address, room));
  (from_start ? variables_used_ : own_used_) += room;
  return address;
}

Result<uint64_t> DeviceMemory::add_variables(uint64_t bytes) {
  return open_up(bytes, "of module variables", true);
}

Result<uint64_t> DeviceMemory::add_own(uint64_t bytes) {
  return open_up(bytes, "beside module variables", false);
}

Status DeviceMemory::set_heap_bytes(uint64_t bytes) {
  if (heap_ && bytes != heap_bytes_)
    return fail(ErrorCode::kInvalidArgument, "a heap of %llu bytes: kernels that may use the one of %llu were launched",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(heap_bytes_));
  if (bytes > kVariableWindow / 2)
    return fail(ErrorCode::kInvalidArgument, "a heap of %llu bytes: at most %llu are possible",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(kVariableWindow / 2));
  heap_bytes_ = round_up(bytes, DeviceHeap::kAlignment);
  return {};
}

Status DeviceMemory::make_heap() {
  if (heap_) return {};
  auto base = add_own(heap_bytes_);
  if (!base) return tl::unexpected(base.error());
  heap_ = std::make_unique<DeviceHeap>(*base, heap_bytes_);
  return {};
}

Result<uint64_t> DeviceMemory::grid_workspace(uint64_t grid_id) {
  if (workspaces_ == 0) {
    auto base = add_own(kWorkspaces * kWorkspaceBytes);
    if (!base) return tl::unexpected(base.error());
    workspaces_ = *base;
  }
  return workspaces_ + grid_id % kWorkspaces * kWorkspaceBytes;
}

bool DeviceMemory::accessible(uint64_t address, uint64_t bytes) const {
  bool of_device =
      overlaps(address, bytes, base_, bytes_) || overlaps(address, bytes, variables_base_, kVariableWindow);
  return !of_device || map_.contains(address, bytes);
}

}  // namespace heddle::software
