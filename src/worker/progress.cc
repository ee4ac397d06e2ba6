#include "worker/progress.h"

#include <algorithm>
#include <bit>
#include <new>

#include "core/clock.h"

namespace heddle::worker {

Result<std::unique_ptr<Progress>> Progress::create(protocol::RingMemory& ring, Commit& commit) {
  std::unique_ptr<Progress> progress(new (std::nothrow) Progress(ring, commit));
  const uint64_t slots = std::bit_ceil(ring.records().size() / protocol::kRecordAlign);
  if (progress) {
    progress->slots_.reset(new (std::nothrow) Pending[slots]);
    progress->streams_.reset(new (std::nothrow) Stream[protocol::kMaxStreams]);
    progress->events_.reset(new (std::nothrow) uint64_t[protocol::kMaxEvents]{});
  }
  if (!progress || !progress->slots_ || !progress->streams_ || !progress->events_)
    return fail(ErrorCode::kOutOfMemory, "no host memory to follow %lu records", static_cast<unsigned long>(slots));
  progress->mask_ = slots - 1;
  const protocol::LogState log = commit.log();
  progress->completed_ = log.completed;
  progress->shown_ = log.shown;
  for (const auto& each : log.streams) progress->streams_[each.stream].cut = each.sequence;
  return progress;
}

void Progress::enter(const protocol::Record& record, uint64_t bytes, WorkKind timed) {
  Pending& slot = slots_[record.header.sequence & mask_];
  slot.end = record.end;
  slot.bytes = bytes;
  slot.type = record.header.type;
  slot.stream = record.header.stream;
  slot.event = static_cast<uint32_t>(record.header.a);
  slot.on_device = false;
  slot.timed = timed;
  if (keeps_order(slot.type)) streams_[slot.stream].entered = record.header.sequence;
}

void Progress::hand_over(uint64_t sequence, bool unprotected) {
  Pending& slot = slots_[sequence & mask_];
  slot.on_device = true;
  slot.unprotected = unprotected;
  streams_[slot.stream].on_device.fetch_add(1, std::memory_order_relaxed);
  ring_.header().issued.store(sequence, std::memory_order_relaxed);
}

void Progress::take_back(uint64_t sequence) {
  Pending& slot = slots_[sequence & mask_];
  slot.on_device = false;
  streams_[slot.stream].on_device.fetch_sub(1, std::memory_order_relaxed);
}

bool Progress::done(uint64_t sequence) const {
  return sequence <= completed() || pending(sequence).done.load(std::memory_order_acquire) == sequence;
}

void Progress::finish(uint64_t sequence) {
  const Finished one{sequence, MonotonicClock().now()};
  finish(std::span(&one, 1));
}

void Progress::finish(std::span<const Finished> records) {
  if (records.empty()) return;
  uint64_t completed;
  bool awaited = false, shows = false;
  {
    std::lock_guard lock(mutex_);
    for (const Finished& record : records) {
      complete(record);
      awaited |= record.sequence == watched_.load(std::memory_order_seq_cst);
      awaited |= wakes_when_idle_ && idle(pending(record.sequence).stream);
    }
    advance();
    shows = show_if_due() == Shown::kYes;
    completed = completed_.load(std::memory_order_relaxed);
  }
  if (shows) commit_.ring_client();
  const bool once = completed >= wake_once_at_.load(std::memory_order_seq_cst);
  if (once) wake_once_at_.store(kNever, std::memory_order_relaxed);
  if (once || awaited || completed >= wake_at_.load(std::memory_order_seq_cst))
    protocol::ring_bell(ring_.header().to_worker);
}

void Progress::complete(const Finished& finished) {
  Pending& slot = slots_[finished.sequence & mask_];
  Stream& stream = streams_[slot.stream];
  if (slot.type == protocol::RecordType::kEventRecord) complete_event(slot, finished);
  if (slot.on_device) {
    stream.done = std::max(stream.done, finished.sequence);
    stream.on_device.fetch_sub(1, std::memory_order_acq_rel);
  } else {
    stream.trailing = std::max(stream.trailing, finished.sequence);
  }
  if (idle(slot.stream)) stream.done = std::max(stream.done, stream.trailing);
  // Of what a worker before has shown of the stream, nothing is known here.
  if (stream.done != 0) commit_.stream(slot.stream, stream.done);
  slot.done.store(finished.sequence, std::memory_order_release);
}

// An event may be recorded again, on another stream, before the earlier record is reached: the later record counts.
void Progress::complete_event(const Pending& slot, const Finished& finished) {
  if (slot.event >= protocol::kMaxEvents) return;  // refused, and finished all the same
  uint64_t& reached = events_[slot.event];
  if (finished.sequence < reached) return;
  reached = finished.sequence;
  commit_.event({slot.event, slot.stream, finished.sequence, finished.when});
}

void Progress::advance() {
  uint64_t completed = completed_.load(std::memory_order_relaxed);
  uint64_t end = 0;
  for (;;) {
    const Pending& next = slots_[(completed + 1) & mask_];
    if (next.done.load(std::memory_order_acquire) != completed + 1) break;
    end = next.end;
    ++completed;
  }
  if (end == 0) return;
  // The client may fill the freed space, and so these slots, as soon as it is shown record_head: known here before.
  commit_.log(completed, end, [&] { completed_.store(completed, std::memory_order_seq_cst); });
}

// ---- Epochs ----

void Progress::hold() {
  const std::lock_guard lock(mutex_);
  held_at_.store(completed_.load(std::memory_order_relaxed), std::memory_order_release);
  commit_at_ = kNever;
  wakes_when_idle_ = false;
  commit_.hold();
}

void Progress::commit_at(uint64_t sequence) {
  (void)end_at(sequence, false);
}

bool Progress::show_at(uint64_t sequence) {
  return end_at(sequence, true) != Shown::kWithItsCommit;
}

Progress::Shown Progress::end_at(uint64_t sequence, bool ahead) {
  Shown shown = Shown::kYes;
  {
    const std::lock_guard lock(mutex_);
    if (!commit_.holding()) return shown;
    commit_at_ = sequence;
    ahead_ = ahead;
    shown = show_if_due();
  }
  if (shown == Shown::kYes) commit_.ring_client();
  return shown;
}

bool Progress::go_on_holding() {
  const std::lock_guard lock(mutex_);
  commit_at_ = kNever;
  wakes_when_idle_ = false;
  return commit_.holding();
}

std::vector<uint32_t> Progress::commit_done(const std::vector<std::vector<uint32_t>>& components) {
  std::vector<uint32_t> done;
  {
    const std::lock_guard lock(mutex_);
    if (!commit_.holding()) return {};
    wakes_when_idle_ = true;
    for (const auto& streams : components) {
      if (std::all_of(streams.begin(), streams.end(), [this](uint32_t stream) { return idle(stream); }))
        done.insert(done.end(), streams.begin(), streams.end());
    }
    if (done.empty() || !commit_streams(done)) return {};
  }
  commit_.ring_client();
  return done;
}

// The log's own cut follows as far as all of it is committed now: so the program gets space, and frees act.
bool Progress::commit_streams(const std::vector<uint32_t>& streams) {
  std::vector<protocol::StreamCuts::Cut> cuts;
  for (const uint32_t stream : streams) cuts.push_back({stream, streams_[stream].entered});
  if (!commit_.may_release(cuts)) return false;
  for (const auto& each : cuts) streams_[each.stream].cut = std::max(streams_[each.stream].cut, each.sequence);
  uint64_t committed = held_at_.load(std::memory_order_relaxed), end = 0;
  for (;;) {
    const Pending& next = pending(committed + 1);
    if (next.done.load(std::memory_order_acquire) != committed + 1) break;
    if (keeps_order(next.type) && !is_cut(committed + 1)) break;
    end = next.end;
    ++committed;
  }
  commit_.release(cuts, committed, end);
  held_at_.store(committed, std::memory_order_release);
  return true;
}

void Progress::show_uncommitted() {
  {
    const std::lock_guard lock(mutex_);
    commit_.release();
  }
  commit_.ring_client();
}

void Progress::saved_variables(uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  commit_.saved_variables(sequence);
}

// Printed text is shown with its commit, for which the issuer has to see to what else belongs to that.
Progress::Shown Progress::show_if_due() {
  if (!commit_.holding()) return Shown::kYes;
  const uint64_t completed = completed_.load(std::memory_order_relaxed);
  if (completed < commit_at_) return Shown::kNotYet;
  if (!ahead_) {
    commit_.release();
    return Shown::kYes;
  }
  if (!commit_.show_ahead()) {
    protocol::ring_bell(ring_.header().to_worker);
    return Shown::kWithItsCommit;
  }
  shown_.store(completed, std::memory_order_release);
  return Shown::kYes;
}

void Progress::reach_host_call(uint64_t sequence) {
  const uint32_t stream = pending(sequence).stream;
  streams_[stream].host_call.store(sequence, std::memory_order_release);
  commit_.host_call(stream, sequence);
}

}  // namespace heddle::worker
