#pragma once

#include <cstdint>
#include <vector>

namespace heddle::software {

// What a launch is expected to read and write of device memory: its declared read and write set. Checked blocks tell of
// accesses beyond it. Filled before the launch, then only read.
class DeclaredAccess {
 public:
  void allow(uint64_t address, uint64_t bytes, bool read, bool write) {
    if (read) read_.push_back({address, bytes});
    if (write) written_.push_back({address, bytes});
  }
  void allow_all_reads() { reads_all_ = true; }
  void allow_all_writes() { writes_all_ = true; }

  bool permits_read(uint64_t address, uint64_t bytes) const { return reads_all_ || holds(read_, address, bytes); }
  bool permits_write(uint64_t address, uint64_t bytes) const { return writes_all_ || holds(written_, address, bytes); }

 private:
  struct Range {
    uint64_t address, bytes;
  };
  // Launches name few buffers.
  static bool holds(const std::vector<Range>& ranges, uint64_t address, uint64_t bytes) {
    for (const Range& range : ranges) {
      const uint64_t offset = address - range.address;
      if (offset < range.bytes && bytes <= range.bytes - offset) return true;
    }
    return false;
  }

  std::vector<Range> read_, written_;
  bool reads_all_ = false, writes_all_ = false;
};

}  // namespace heddle::software
