#include "worker/printer.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace heddle::worker {
namespace {

// Behind `tail`, if no more than `room` bytes are then unread.
bool append(std::span<char> area, uint64_t& tail, uint64_t head, uint64_t room, std::string_view text) {
  const uint64_t unread = tail - head;
  if (unread > room || text.size() > room - unread) return false;
  const uint64_t offset = tail % area.size();
  const size_t first = std::min<size_t>(text.size(), area.size() - offset);
  std::memcpy(area.data() + offset, text.data(), first);
  std::memcpy(area.data(), text.data() + first, text.size() - first);
  tail += text.size();
  return true;
}

}  // namespace

void Printer::attach(protocol::RingMemory& ring) {
  std::lock_guard lock(mutex_);
  ring_ = &ring;
  tail_ = ring.header().print_tail.load(std::memory_order_acquire);
  lost_ = ring.header().print_lost.load(std::memory_order_acquire);
  report_tail_ = ring.header().report_tail.load(std::memory_order_acquire);
  findings_ = ring.header().findings.load(std::memory_order_acquire);
}

void Printer::print(std::string_view text) {
  std::lock_guard lock(mutex_);
  if (!ring_) return;
  protocol::RingHeader& header = ring_->header();
  const auto area = ring_->print_area();
  const uint64_t asked = header.print_bytes.load(std::memory_order_relaxed);
  const uint64_t room = std::min<uint64_t>(asked ? asked : protocol::kDefaultPrintBytes, area.size());
  if (append(area, tail_, header.print_head.load(std::memory_order_acquire), room, text)) {
    header.print_tail.store(tail_, std::memory_order_release);
  } else {
    lost_ += text.size();
    header.print_lost.store(lost_, std::memory_order_release);
  }
}

void Printer::report_finding(std::string_view text) {
  std::lock_guard lock(mutex_);
  if (!ring_) return;
  protocol::RingHeader& header = ring_->header();
  const auto area = ring_->report_area();
  const std::string line = "heddle: check: " + std::string(text) + "\n";
  header.findings.store(++findings_, std::memory_order_release);
  if (append(area, report_tail_, header.report_head.load(std::memory_order_acquire), area.size(), line))
    header.report_tail.store(report_tail_, std::memory_order_release);
}

}  // namespace heddle::worker
