#include "worker/printer.h"

#include <algorithm>
#include <cstring>

namespace heddle::worker {

void Printer::attach(protocol::RingMemory& ring) {
  std::lock_guard lock(mutex_);
  ring_ = &ring;
  tail_ = ring.header().print_tail.load(std::memory_order_acquire);
  lost_ = ring.header().print_lost.load(std::memory_order_acquire);
}

void Printer::print(std::string_view text) {
  std::lock_guard lock(mutex_);
  if (!ring_) return;
  protocol::RingHeader& header = ring_->header();
  const auto area = ring_->print_area();
  const uint64_t unread = tail_ - header.print_head.load(std::memory_order_acquire);
  const uint64_t asked = header.print_bytes.load(std::memory_order_relaxed);
  const uint64_t room = std::min<uint64_t>(asked ? asked : protocol::kDefaultPrintBytes, area.size());
  if (unread > room || text.size() > room - unread) {
    lost_ += text.size();
    header.print_lost.store(lost_, std::memory_order_release);
    return;
  }
  const uint64_t offset = tail_ % area.size();
  const size_t first = std::min<size_t>(text.size(), area.size() - offset);
  std::memcpy(area.data() + offset, text.data(), first);
  std::memcpy(area.data(), text.data() + first, text.size() - first);
  tail_ += text.size();
  header.print_tail.store(tail_, std::memory_order_release);
}

}  // namespace heddle::worker
