#include "client/print.h"

#include <algorithm>
#include <cstdio>

namespace heddle::client {

void print_to_stdout(protocol::RingHeader& header, std::span<const char> area) {
  uint64_t head = header.print_head.load(std::memory_order_relaxed);
  const uint64_t tail = header.print_tail.load(std::memory_order_acquire);
  if (tail - head <= area.size()) {
    while (head != tail) {
      const uint64_t offset = head % area.size();
      const uint64_t bytes = std::min(tail - head, area.size() - offset);
      std::fwrite(area.data() + offset, 1, bytes, stdout);
      head += bytes;
    }
    std::fflush(stdout);
  }
  header.print_head.store(tail, std::memory_order_release);
}

}  // namespace heddle::client
