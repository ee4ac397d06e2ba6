#pragma once

#include <cstdint>
#include <vector>

#include "core/fd.h"
#include "core/result.h"
#include "core/units.h"

namespace heddle::software {

// Which addresses kernels may touch. Device addresses are addresses of this process: what is added here must be mapped
// here, whole granules of it, or a kernel's access would crash the process instead of faulting.
//
// Windows are given at construction; inside them a table has one byte a granule, so that a look-up is O(1) for each
// window. Tables of large windows cost address space only: pages that nobody touches are never allocated.
//
// Thread safety: contains() from any thread; add() and remove() from one thread at a time, concurrent with contains().
class MemoryMap {
 public:
  static constexpr uint64_t kGranule = 2 * kMiB;  // a GPU checks at this granularity too
  static constexpr uint32_t kMaxWindows = 4;

  struct Window {
    uint64_t base = 0;   // a multiple of kGranule
    uint64_t bytes = 0;  // a multiple of kGranule
  };

  // An error if there are more than kMaxWindows, one is not aligned, or its table cannot be had.
  static Result<MemoryMap> create(const std::vector<Window>& windows);

  // `address` and `bytes` are multiples of kGranule within one window, else an error and nothing changes.
  Status add(uint64_t address, uint64_t bytes) { return set(address, bytes, kPresent); }
  Status remove(uint64_t address, uint64_t bytes) { return set(address, bytes, 0); }
  // What is there already lies on the host, until it is removed: kernels may touch it all the same.
  Status set_on_host(uint64_t address, uint64_t bytes) {
    __atomic_store_n(&any_on_host_, true, __ATOMIC_RELAXED);
    return set(address, bytes, kOnHost);
  }

  // Whether all of [address, address + bytes) may be touched; `bytes` is at least 1.
  [[gnu::always_inline]] bool contains(uint64_t address, uint64_t bytes) const {
    for (uint32_t i = 0; i < count_; ++i) {
      const Table& table = tables_[i];
      uint64_t offset = address - table.window.base;
      if (offset >= table.window.bytes || bytes > table.window.bytes - offset) continue;
      uint64_t first = offset / kGranule, last = (offset + bytes - 1) / kGranule;
      uint8_t present = load(table, first);
      while (first < last && present) present = load(table, ++first);
      return present != 0;
    }
    return false;
  }

  // Whether the memory at `address` lies on the host. Where none ever did, that is known at once.
  [[gnu::always_inline]] bool on_host(uint64_t address) const {
    return __builtin_expect(__atomic_load_n(&any_on_host_, __ATOMIC_RELAXED), false) && at(address) == kOnHost;
  }

  // Whether memory that may be touched begins or ends within a granule of this. A GPU's driver places buffers side by
  // side in larger pieces, so that programs which read a little before or behind a buffer, and do not use what they
  // read, run there; here such reads find zeros.
  bool is_beside(uint64_t address, uint64_t bytes) const {
    return contains(address - kGranule, bytes) || contains(address + kGranule, bytes);
  }

 private:
  static constexpr uint8_t kPresent = 1, kOnHost = 2;  // of a granule; 0: nothing is there
  struct Table {
    Window window;
    Mapping mapping;
    uint8_t* granules = nullptr;
  };

  [[gnu::always_inline]] static uint8_t load(const Table& table, uint64_t granule) {
    return __atomic_load_n(table.granules + granule, __ATOMIC_RELAXED);
  }
  uint8_t at(uint64_t address) const;
  Status set(uint64_t address, uint64_t bytes, uint8_t present);

  Table tables_[kMaxWindows];
  uint32_t count_ = 0;
  bool any_on_host_ = false;  // ever was
};

}  // namespace heddle::software
