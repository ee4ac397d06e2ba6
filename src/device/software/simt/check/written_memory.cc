#include "device/software/simt/check/written_memory.h"

#include <sys/mman.h>

#include <algorithm>

namespace heddle::software {
namespace {

// Bits of one word: from bit `first` up to `end`.
uint8_t bits_between(uint64_t first, uint64_t end) {
  return static_cast<uint8_t>((0xFFu >> (8 - (end - first))) << first);
}

}  // namespace

Result<WrittenMemory> WrittenMemory::create(uint64_t base, uint64_t bytes) {
  void* bits = mmap(nullptr, bytes / 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bits == MAP_FAILED)
    return fail_errno(-1, "a bit for each of %llu bytes of device memory", static_cast<unsigned long long>(bytes));
  return WrittenMemory(base, bytes, Mapping(bits, bytes / 8));
}

void WrittenMemory::set(uint64_t address, uint64_t bytes, bool written) {
  uint64_t at = std::max(address, base_) - base_;
  const uint64_t end = std::min(address + bytes, base_ + bytes_);
  if (address + bytes <= base_ || end <= base_ + at) return;
  for (const uint64_t last = end - base_; at < last;) {
    const uint64_t next = std::min(last, at / 8 * 8 + 8);
    const uint8_t bits = bits_between(at % 8, next - at / 8 * 8);
    if (bits == 0xFF) {
      word(at).store(written ? 0xFF : 0, std::memory_order_relaxed);
    } else if (written) {
      word(at).fetch_or(bits, std::memory_order_relaxed);
    } else {
      word(at).fetch_and(static_cast<uint8_t>(~bits), std::memory_order_relaxed);
    }
    at = next;
  }
}

bool WrittenMemory::any(uint64_t address, uint64_t bytes) const {
  if (address < base_ || address + bytes > base_ + bytes_) return true;
  for (uint64_t at = address - base_, last = at + bytes; at < last;) {
    const uint64_t next = std::min(last, at / 8 * 8 + 8);
    if (word(at).load(std::memory_order_relaxed) & bits_between(at % 8, next - at / 8 * 8)) return true;
    at = next;
  }
  return false;
}

}  // namespace heddle::software
