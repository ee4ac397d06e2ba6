#pragma once

#include <atomic>
#include <cstdint>

#include "core/fd.h"
#include "core/result.h"

namespace heddle::software {

// Which bytes of device memory were written since they were mapped: by copies, fills and kernels. One bit a byte; bits
// that nobody touches cost address space only. What lies outside of the range counts as written.
//
// Thread-safe; two threads that write and read the same byte at once race in the program already.
class WrittenMemory {
 public:
  // `base` and `bytes`: multiples of 8.
  static Result<WrittenMemory> create(uint64_t base, uint64_t bytes);

  void mark(uint64_t address, uint64_t bytes) { set(address, bytes, true); }
  void forget(uint64_t address, uint64_t bytes) { set(address, bytes, false); }
  // Whether any of these bytes was written.
  bool any(uint64_t address, uint64_t bytes) const;

 private:
  WrittenMemory(uint64_t base, uint64_t bytes, Mapping bits) : base_(base), bytes_(bytes), bits_(std::move(bits)) {}
  void set(uint64_t address, uint64_t bytes, bool written);
  std::atomic<uint8_t>& word(uint64_t offset) const {
    return static_cast<std::atomic<uint8_t>*>(bits_.data())[offset / 8];
  }

  uint64_t base_, bytes_;
  Mapping bits_;
};

}  // namespace heddle::software
