#include "worker/commit.h"

#include "core/clock.h"
#include "protocol/ring_reader.h"

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
  show(printed());
  held_.take([this](uint32_t number, uint64_t sequence) { stream(number, sequence); },
             [this](const Uncommitted::Event& each) { event(each.event, each.sequence, each.when); });
  show(cut_.completed, cut_.record_head);
}

// The forerunner's words of streams and events died with it. They are those of the records between what is shown and
// the cut, which stand in the ring until record_head has passed them. The ring is the program's: where it makes no
// sense the program is shown less, and nobody else is.
void Commit::show_again(const protocol::LogState& log) {
  const protocol::RingHeader& header = ring_.header();
  auto reader = protocol::RingReader::attach(ring_, header.record_head.load(std::memory_order_acquire),
                                             header.completed.load(std::memory_order_acquire));
  const TimePoint now = MonotonicClock().now();
  for (protocol::Record record{}; reader && record.header.sequence < log.completed;) {
    const auto got = reader->next(record);
    if (!got || !*got) break;
    if (record.header.sequence <= log.completed) show_record(record.header, now);
  }
  show(log.printed);
  show(log.completed, log.record_head);
  ring_client();
}

// Of an event the time is lost; it was reached before now.
void Commit::show_record(const protocol::RecordHeader& record, TimePoint now) {
  raise_to(ring_.streams()[record.stream].completed, record.sequence);
  if (record.type != protocol::RecordType::kEventRecord || record.a >= protocol::kMaxEvents) return;
  protocol::EventSlot& event = ring_.events()[record.a];
  if (event.completed.load(std::memory_order_relaxed) >= record.sequence) return;
  event.time_ns.store(static_cast<uint64_t>(now.time_since_epoch().count()), std::memory_order_relaxed);
  event.completed.store(record.sequence, std::memory_order_release);
}

// A commit and the printing of the next line may meet here: the words only grow.
void Commit::show(const protocol::Printed& printed) {
  raise_to(ring_.header().print_tail, printed.tail);
  raise_to(ring_.header().print_lost, printed.lost);
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
