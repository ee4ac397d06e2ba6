#include "worker/commit.h"

namespace heddle::worker {
namespace {

void raise_to(std::atomic<uint64_t>& word, uint64_t value) {
  uint64_t shown = word.load(std::memory_order_relaxed);
  while (shown < value && !word.compare_exchange_weak(shown, value, std::memory_order_release)) {
  }
}

}  // namespace

// The cut first: that alone commits. What is shown behind it the next worker shows again.
void Commit::release() {
  note_cut();
  holding_.store(false, std::memory_order_release);
  show_printed();
  held_.take([this](uint32_t number, uint64_t sequence) { stream(number, sequence); },
             [this](const Uncommitted::Event& each) { event(each.event, each.sequence, each.when); });
  show(cut_.completed, cut_.record_head);
}

// Text that was printed last; a new worker has printed none, and leaves what its forerunner has shown. A commit and the
// printing of the next line may meet here: the words only grow.
void Commit::show_printed() {
  raise_to(ring_.header().print_tail, printed_.load(std::memory_order_relaxed));
  raise_to(ring_.header().print_lost, print_lost_.load(std::memory_order_relaxed));
}

void Commit::fault(const Refusal& refusal) {
  protocol::RingHeader& header = ring_.header();
  protocol::set_text(header.fault_text, refusal.text);
  header.fault.store(refusal.cuda_error, std::memory_order_release);
  tell_heddled(refusal, false);
}

void Commit::possible_fault(const Refusal& refusal) {
  tell_heddled(refusal, true);
}

void Commit::tell_heddled(const Refusal& refusal, bool held_back) {
  protocol::WorkerFault message{refusal.cuda_error, refusal.device_lost, held_back};
  protocol::set_text(message.text, refusal.text);
  outbox_.put(message);
}

}  // namespace heddle::worker
