#include "worker/commit.h"

#include <algorithm>

#include "core/clock.h"
#include "protocol/ring_reader.h"
#include "worker/kernel_times.h"

namespace heddle::worker {
namespace {

void raise_to(std::atomic<uint64_t>& word, uint64_t value) {
  uint64_t shown = word.load(std::memory_order_relaxed);
  while (shown < value && !word.compare_exchange_weak(shown, value, std::memory_order_release)) {
  }
}

}  // namespace

void Commit::note_cut() {
  cut_.printed = printed();
  if (!cut_.streams.empty()) cut_.streams.forget(cut_.completed);
  page_.note_cut(cut_);
  noted_ = cut_;
}

// The cut first: that alone commits. What is shown behind it the next worker shows again.
void Commit::release() {
  note_cut();
  holding_.store(false, std::memory_order_release);
  show(printed());
  held_.take([this](uint32_t number, uint64_t sequence) { stream(number, sequence); },
             [this](const Uncommitted::Event& each) { event(each); });
  show(cut_.completed, cut_.record_head);
}

// Noted first: a next worker shows it again, and does not write to the program's memory what the program has seen. Who
// waits for what is not committed says so behind this.
bool Commit::show_ahead() {
  if (printed() != noted_.printed) return false;
  shown_ = std::max(shown_, cut_.completed);
  page_.note_shown(cut_.completed);
  held_.take([this](uint32_t number, uint64_t sequence) { show_stream(ring_, number, sequence); },
             [this](const Uncommitted::Event& each) { show_event(ring_, each); });
  protocol::RingHeader& header = ring_.header();
  header.completed.store(shown_, std::memory_order_release);
  uint64_t wanted = header.wanted.load(std::memory_order_relaxed);
  if (wanted <= shown_) header.wanted.compare_exchange_strong(wanted, 0, std::memory_order_relaxed);
  return true;
}

// Lines that were printed since the last cut may be those of streams that are held back.
bool Commit::may_release(const std::vector<protocol::StreamCuts::Cut>& streams) const {
  return printed() == noted_.printed && noted_.streams.size() + streams.size() <= protocol::StreamCuts::kMost;
}

// Events before their streams: who has waited for a stream may ask for the events on it.
void Commit::release(const std::vector<protocol::StreamCuts::Cut>& streams, uint64_t completed, uint64_t record_end) {
  for (const auto& each : streams) cut_.streams.raise(each);
  cut_.streams.forget(completed);
  noted_.streams = cut_.streams;
  if (completed > noted_.completed) {
    noted_.completed = completed;
    noted_.record_head = record_end;
  }
  page_.note_cut(noted_);
  protocol::StreamCuts committed;
  for (const auto& each : streams) committed.raise(each);
  held_.take_events([&](const Uncommitted::Event& each) { return each.sequence <= committed.of(each.stream); },
                    [this](const Uncommitted::Event& each) { show_event(ring_, each); });
  for (const auto& each : streams) show_stream(ring_, each.stream, each.sequence);
  show(noted_.completed, noted_.record_head);
}

// The forerunner's words of streams and events died with it. They are those of the records between what is shown and
// the cut, which stand in the ring until record_head has passed them; and behind the log's cut, of those before their
// stream's, and of those that were shown ahead. The ring is the program's: where it makes no sense the program is shown
// less, and nobody else is.
void Commit::show_again(const protocol::LogState& log) {
  page_.note_begun(log.completed);
  auto reader = protocol::RingReader::attach(ring_);
  const TimePoint now = MonotonicClock().now();
  const uint64_t whole = std::max(log.completed, log.shown);
  const uint64_t last = std::max(whole, log.streams.last());
  for (protocol::Record record{}; reader && record.header.sequence < last;) {
    const auto got = reader->next(record);
    if (!got || !*got) break;
    const uint64_t cut = keeps_order(record.header.type) ? log.streams.of(record.header.stream) : 0;
    if (record.header.sequence <= std::max(whole, cut)) show_record(record.header, now);
  }
  show(log.printed);
  show(log.completed, log.record_head);
  ring_client();
}

// Of an event the time is lost; it was reached before now.
void Commit::show_record(const protocol::RecordHeader& record, TimePoint now) {
  if (record.type == protocol::RecordType::kEventRecord && record.a < protocol::kMaxEvents) {
    show_event(ring_, {static_cast<uint32_t>(record.a), record.stream, record.sequence, now});
  }
  show_stream(ring_, record.stream, record.sequence);
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
