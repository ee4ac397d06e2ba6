#include "client/device/print.h"

#include <algorithm>

namespace heddle::client {

void drain(std::span<const char> area, const std::atomic<uint64_t>& tail, std::atomic<uint64_t>& head, std::FILE* to) {
  uint64_t taken = head.load(std::memory_order_relaxed);
  const uint64_t written = tail.load(std::memory_order_acquire);
  if (written == taken) return;
  if (written - taken <= area.size()) {
    while (taken != written) {
      const uint64_t offset = taken % area.size();
      const uint64_t bytes = std::min(written - taken, area.size() - offset);
      std::fwrite(area.data() + offset, 1, bytes, to);
      taken += bytes;
    }
    std::fflush(to);
  }
  head.store(written, std::memory_order_release);
}

}  // namespace heddle::client
