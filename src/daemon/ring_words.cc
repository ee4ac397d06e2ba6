#include "daemon/ring_words.h"

#include "protocol/socket.h"

namespace heddle::daemon {
namespace {

using protocol::Binding;
using protocol::RingHeader;

void set_binding(RingHeader& header, Binding binding) {
  header.binding.store(static_cast<uint32_t>(binding), std::memory_order_release);
}

void announce_binding(RingHeader& header, Binding binding) {
  set_binding(header, binding);
  protocol::ring_bell(header.to_client);
}

}  // namespace

void say_waiting(VirtualDevice& device) {
  // Nobody sleeps for this word: it is there to be read.
  if (device.ring) set_binding(device.ring->header(), Binding::kWaiting);
}

// The program appends a record, adds to the bell's word and looks at the binding; this writes the binding and adds to
// the word. With all of these sequentially consistent, either the program sees the binding or this sees its record.
void say_away(VirtualDevice& device) {
  if (!device.ring) return;
  RingHeader& header = device.ring->header();
  header.binding.store(static_cast<uint32_t>(Binding::kAway), std::memory_order_seq_cst);
  header.to_worker.word.fetch_add(0, std::memory_order_seq_cst);
}

void say_unbound(VirtualDevice& device) {
  if (device.ring) announce_binding(device.ring->header(), Binding::kUnbound);
}

void say_bound(VirtualDevice& device, uint64_t serial) {
  if (!device.ring) return;
  RingHeader& header = device.ring->header();
  header.task_serial.store(serial, std::memory_order_release);
  announce_binding(header, Binding::kBound);
  protocol::ring_bell(header.to_worker);
}

// Behind it, heddled looks for what is idle: with both sequentially consistent, it sees what the program offered before
// it looked at this word.
void say_idle_allowed(VirtualDevice& device, bool allowed) {
  std::atomic<uint32_t>& word = device.ring->header().idle_allowed;
  const uint32_t value = allowed ? 1 : 0;
  if (word.load(std::memory_order_relaxed) != value) word.store(value, std::memory_order_seq_cst);
}

bool offers_idle(const Session& session, const VirtualDevice& device) {
  using protocol::IdleTable;
  const uint64_t task = device.ring->header().idle.task.load(std::memory_order_seq_cst);
  return task == IdleTable::offered_task(device.task->serial) || idle_bytes(session, device).value != 0;
}

void ask_for_idle(VirtualDevice& device) {
  device.ring->header().reclaims.fetch_add(1, std::memory_order_release);
  protocol::ring_bell(device.ring->header().to_worker);
}

void say_failed(VirtualDevice& device, uint32_t cuda_error, const std::string& text) {
  if (!device.ring) return;
  RingHeader& header = device.ring->header();
  protocol::set_text(header.error_text, text);
  header.error.store(cuda_error, std::memory_order_release);
  announce_binding(header, Binding::kFailed);
}

}  // namespace heddle::daemon
