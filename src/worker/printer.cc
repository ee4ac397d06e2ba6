#include "worker/printer.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace heddle::worker {
namespace {

// Behind `tail`, if no more than `space` bytes are then unread.
bool append(std::span<char> area, uint64_t& tail, uint64_t head, uint64_t space, std::string_view text) {
  const uint64_t unread = tail - head;
  if (unread > space || text.size() > space - unread) return false;
  const uint64_t offset = tail % area.size();
  const size_t first = std::min<size_t>(text.size(), area.size() - offset);
  std::memcpy(area.data() + offset, text.data(), first);
  std::memcpy(area.data(), text.data() + first, text.size() - first);
  tail += text.size();
  return true;
}

}  // namespace

void Printer::attach(protocol::RingMemory& ring, Commit& commit) {
  std::lock_guard lock(mutex_);
  ring_ = &ring;
  commit_ = &commit;
  tail_ = ring.header().print_tail.load(std::memory_order_acquire);
  lost_ = ring.header().print_lost.load(std::memory_order_acquire);
  report_tail_ = ring.header().report_tail.load(std::memory_order_acquire);
  findings_ = ring.header().findings.load(std::memory_order_acquire);
}

void Printer::detach() {
  std::lock_guard lock(mutex_);
  ring_ = nullptr;
}

void Printer::print(std::string_view text) {
  std::lock_guard lock(mutex_);
  if (!ring_) return;
  protocol::RingHeader& header = ring_->header();
  const auto area = ring_->print_area();
  const uint64_t asked = header.print_bytes.load(std::memory_order_relaxed);
  const uint64_t space = std::min<uint64_t>(asked ? asked : protocol::kDefaultPrintBytes, area.size());
  if (!append(area, tail_, header.print_head.load(std::memory_order_acquire), space, text)) lost_ += text.size();
  commit_->printed(tail_, lost_);
}

void Printer::report_finding(std::string_view text) {
  std::lock_guard lock(mutex_);
  if (!ring_) return;
  protocol::RingHeader& header = ring_->header();
  const auto area = ring_->report_area();
  const std::string line = "heddle: check: " + std::string(text) + "\n";
  commit_->found(++findings_);
  if (append(area, report_tail_, header.report_head.load(std::memory_order_acquire), area.size(), line))
    commit_->reported(report_tail_);
}

size_t Printer::pass_on(std::string_view text) {
  std::lock_guard lock(mutex_);
  if (!ring_) return 0;
  protocol::RingHeader& header = ring_->header();
  const auto area = ring_->report_area();
  const uint64_t head = header.report_head.load(std::memory_order_acquire), unread = report_tail_ - head;
  const uint64_t space = unread > area.size() ? 0 : area.size() - unread;
  const auto part = text.substr(0, space);
  if (part.empty() || !append(area, report_tail_, head, area.size(), part)) return 0;
  commit_->reported(report_tail_);
  commit_->ring_client();
  return part.size();
}

bool Printer::has_program() {
  std::lock_guard lock(mutex_);
  return ring_ != nullptr;
}

void Printer::set_source(std::function<void()> source) {
  std::lock_guard lock(source_mutex_);
  source_ = std::move(source);
}

void Printer::collect() {
  std::lock_guard lock(source_mutex_);
  if (source_) source_();
}

}  // namespace heddle::worker
