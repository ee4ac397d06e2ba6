#include "device/software/simt/memory_map.h"

#include <sys/mman.h>

namespace heddle::software {

Result<MemoryMap> MemoryMap::create(const std::vector<Window>& windows) {
  MemoryMap map;
  if (windows.size() > kMaxWindows)
    return fail(ErrorCode::kLimitExceeded, "%zu memory windows: there can be %u", windows.size(), kMaxWindows);
  for (const Window& window : windows) {
    if (window.base % kGranule || window.bytes % kGranule || window.bytes == 0 ||
        window.base + window.bytes < window.base)
      return fail(ErrorCode::kInvalidArgument, "memory window at 0x%llx of %llu bytes: both must be multiples of 2 MiB",
                  static_cast<unsigned long long>(window.base), static_cast<unsigned long long>(window.bytes));
    size_t bytes = window.bytes / kGranule;
    void* table = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED) return fail_errno(-1, "table of %zu granules for a memory window", bytes);
    map.tables_[map.count_++] = {window, Mapping(table, bytes), static_cast<uint8_t*>(table)};
  }
  return map;
}

uint8_t MemoryMap::at(uint64_t address) const {
  for (uint32_t i = 0; i < count_; ++i) {
    const uint64_t offset = address - tables_[i].window.base;
    if (offset < tables_[i].window.bytes) return load(tables_[i], offset / kGranule);
  }
  return 0;
}

Status MemoryMap::set(uint64_t address, uint64_t bytes, uint8_t present) {
  for (uint32_t w = 0; w < count_; ++w) {
    const Table& table = tables_[w];
    uint64_t offset = address - table.window.base;
    bool inside = offset < table.window.bytes && bytes <= table.window.bytes - offset;
    if (!inside || offset % kGranule || bytes % kGranule) continue;
    for (uint64_t i = offset / kGranule; i < (offset + bytes) / kGranule; ++i)
      __atomic_store_n(table.granules + i, present, __ATOMIC_RELAXED);
    return {};
  }
  return fail(ErrorCode::kInvalidArgument,
              "memory at 0x%llx of %llu bytes lies in no window, or is not a multiple of 2 MiB",
              static_cast<unsigned long long>(address), static_cast<unsigned long long>(bytes));
}

}  // namespace heddle::software
