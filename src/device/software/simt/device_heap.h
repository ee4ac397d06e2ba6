#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace heddle::software {

// What device code gets from malloc: pieces of one range of device memory, first fit. What it is told to free and never
// gave out is refused, so that a kernel's mistake cannot spoil the heap; its records lie outside of that memory.
//
// Thread safety: any method from any thread.
class DeviceHeap {
 public:
  static constexpr uint64_t kAlignment = 16;

  // [base, base + bytes) is device memory and outlives the heap; base is aligned.
  DeviceHeap(uint64_t base, uint64_t bytes) : unused_{{base, bytes}} {}

  // Aligned to 16 bytes; 0 if there is no space, or for 0 bytes.
  uint64_t allocate(uint64_t bytes);
  // False if no piece begins there.
  bool free(uint64_t address);

 private:
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> unused_, used_;  // address, bytes; unused ones never touch each other
};

}  // namespace heddle::software
