#include "client/device/ring_port.h"

#include "client/device/print.h"

namespace heddle::client {
namespace {

// Above this a session's own payloads wait for the worker instead of running further ahead: the copy then goes through
// few blocks, which stay in the cache. Only while there is a worker.
constexpr uint32_t kBlocksAhead = 16;

}  // namespace

const RingPort* RingGroup::failed() const {
  for (uint32_t i = 0; i < rings_.size(); ++i) {
    if (!rings_[i]->is_healthy()) return rings_[i];
  }
  return nullptr;
}

RingPort::RingPort(Session& session, uint32_t index, protocol::RingMemory memory, RingPort* home)
    : session_(session),
      index_(index),
      home_index_(home ? home->index_ : index),
      group_(home ? home->group_ : own_group_),
      memory_(std::move(memory)),
      writer_(memory_),
      bulk_(memory_.bulk().size()) {}

std::optional<uint64_t> RingPort::reserve_bulk_paced(uint64_t bytes) {
  const uint64_t now = committed();
  if (is_bound_to(protocol::Binding::kBound) && bulk_.blocks_in_use(now) > kBlocksAhead) return std::nullopt;
  return bulk_.reserve(bytes, now);
}

void RingPort::release_bulk(uint64_t position, uint64_t sequence) {
  bulk_.release(position, sequence);
  ++bulk_releases_;
  protocol::ring_bell(header().to_client);  // another thread may wait for the space
}

// A worker that has taken everything shows it by itself once it is done; one that has more to take is told.
void RingPort::want(uint64_t sequence, Told told) const {
  protocol::RingHeader& head = header();
  if (told == Told::kByWorker) head.watched.store(sequence, std::memory_order_relaxed);
  if (head.wanted.load(std::memory_order_relaxed) == sequence) return;
  head.wanted.store(sequence, std::memory_order_relaxed);
  if (head.holds_back.load(std::memory_order_relaxed) == 0) return;
  if (sequence != head.last_sequence.load(std::memory_order_relaxed)) protocol::ring_bell(head.to_worker);
}

// A worker that has shown everything commits it in its own time, unless it is told.
void RingPort::want_commit() const {
  protocol::RingHeader& head = header();
  head.watched.store(committed() + 1, std::memory_order_relaxed);
  if (head.holds_back.load(std::memory_order_relaxed) == 0) return;
  head.wanted.store(committed() + 1, std::memory_order_relaxed);
  protocol::ring_bell(head.to_worker);
}

// Whoever waits for the record finds out where heddled is lost for good.
void RingPort::ask_for_device() {
  (void)session_.work_waits(index_);
}

Done RingPort::group_failure() const {
  const RingPort* const failed = group_.failed();
  return failed ? failed->read_failure() : Done{};
}

Done RingPort::read_failure() const {
  const auto& head = header();
  const uint32_t fault = head.fault.load(std::memory_order_acquire);
  drain_reports();
  if (fault != 0) return refuse(static_cast<cudaError_t>(fault), protocol::get_text(head.fault_text));
  const uint32_t error = head.error.load(std::memory_order_acquire);
  return refuse(error ? static_cast<cudaError_t>(error) : cudaErrorDevicesUnavailable,
                protocol::get_text(head.error_text));
}

void RingPort::drain_prints() {
  protocol::RingHeader& head = header();
  if (head.print_tail.load(std::memory_order_acquire) == head.print_head.load(std::memory_order_relaxed) &&
      head.report_tail.load(std::memory_order_acquire) == head.report_head.load(std::memory_order_relaxed))
    return;
  const std::lock_guard lock(print_mutex_);
  drain(memory_.print_area(), head.print_tail, head.print_head, stdout);
  drain(memory_.report_area(), head.report_tail, head.report_head, stderr);
}

void RingPort::drain_reports() const {
  protocol::RingHeader& head = header();
  if (head.report_tail.load(std::memory_order_acquire) == head.report_head.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(print_mutex_);
  drain(memory_.report_area(), head.report_tail, head.report_head, stderr);
}

}  // namespace heddle::client
