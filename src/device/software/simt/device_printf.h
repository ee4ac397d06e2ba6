#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/result.h"
#include "device/software/simt/warp.h"

namespace heddle::software {

// Reads a thread's memory through generic addresses, checked as its own accesses are.
class MemoryReader {
 public:
  MemoryReader(const Warp& warp, uint32_t lane) : warp_(warp), lane_(lane) {}
  // False if any of the bytes may not be read; then `to` is unchanged.
  bool read(uint64_t address, void* to, size_t bytes) const;
  // Up to the terminating zero, 64 KiB at most; none if it is not all readable.
  std::optional<std::string> string(uint64_t address) const;

 private:
  const Warp& warp_;
  uint32_t lane_;
};

struct PrintedText {
  std::string text;
  int32_t argument_count = 0;
};

// Formats what a thread prints. `arguments` points to the values as device code lays them out: each aligned to its
// size, 4 bytes for int, 8 for double, long and pointers. A conversion that printf does not have is copied as it
// stands.
Result<PrintedText> format_device_printf(const MemoryReader& reader, uint64_t format, uint64_t arguments);

}  // namespace heddle::software
