// The part of Issuer that ends what goes on behind its record: segments that are freed or reclaimed, tasks, host calls.

#include "core/clock.h"
#include "core/log.h"
#include "worker/issuer.h"

namespace heddle::worker {

bool has_returned(const SessionParts& parts, const HostCall& call) {
  if (!parts.progress.host_call_reached(call.stream, call.sequence)) return false;
  if (parts.fault.raised()) return true;
  return parts.ring.streams()[call.stream].host_done.load(std::memory_order_acquire) >= call.sequence;
}

// Not before heddled says so: it may have chosen another device, and so another worker, for the records that follow.
void Issuer::begin_task(uint64_t serial) {
  if (serial != task_serial_) parts_.commit.begin_task(serial, false);
  task_serial_ = serial;
  backlog_ = false;
  gate_.begin_task();
}

// `sequence` of the record that ends it; 0: the program's words end with what came before.
void Issuer::finish_task(uint64_t sequence) {
  gate_.end_task();
  suspending_ = false;
  idle_since_.reset();
  // The next task may have another worker.
  if (!goes_on_ && !reset_ && !parts_.fault.raised()) (void)parts_.variables.save_now(entered_);
  // What was declared and not touched goes to the next task, and is mapped anew.
  const auto unmapped = segments_.unmap_device_segments();
  if (!unmapped) logger("worker")->error("at the task's end: {}", unmapped.error().text);
  parts_.epoch.end_task();
  parts_.commit.ends(sequence, !segments_.uncertain());
  // Both before heddled may give the ring, and its control page, to another worker.
  if (sequence != 0) parts_.progress.finish(sequence);
  parts_.usage.end_task();
  parts_.commit.tell(protocol::TaskEnded{task_serial_, reset_, !segments_.uncertain()});
}

// In the place of a worker that has died: what it had of the program's modules, and of the same task what it had begun
// to give back.
void Issuer::go_on() {
  const protocol::LogState log = *std::exchange(goes_on_, std::nullopt);
  if (parts_.fault.raised()) return;
  const auto restored = parts_.variables.restore(log);
  if (!restored) return parts_.fault.raise(restored.error());
  if (log.task != task_serial_) return;
  const auto put_back = parts_.epoch.restore(log);
  if (!put_back) return parts_.fault.raise(put_back.error());
  if (idle_.took_task(task_serial_)) return finish_task(0);
  idle_.taken_segments([this](uint64_t number) { return segments_.mapped(number); },
                       [this](uint64_t number) {
                         deferred_.push_back({Deferred::Kind::kReclaim, entered_, 0, number});
                       });
}

// While the ring is quiet; else the end of what was taken wakes us. Where the device is lent to others, too: it is a
// hundredth of the time at most, and nothing would lend the device for it.
void Issuer::save_variables() {
  save_in_.reset();
  if (parts_.commit.holding()) return;  // at the commit
  if (!parts_.variables.to_be_saved() || !gate_.serving() || parts_.fault.raised()) return;
  const TimePoint now = MonotonicClock().now();
  const Duration until_due = parts_.variables.until_due(now);
  if (until_due > Duration::zero()) {
    save_in_ = until_due;
    return;
  }
  // Ask to be woken, then look: it may have become quiet in between.
  parts_.progress.wake_issuer_once_at(entered_);
  if (is_quiet()) parts_.variables.save_if_due(entered_, now);
}

// Everything in the ring was taken and is done.
bool Issuer::is_quiet() const {
  const uint64_t last = parts_.ring.header().last_sequence.load(std::memory_order_acquire);
  return !have_record_ && deferred_.empty() && entered_ == last && parts_.progress.committed() == last;
}

void Issuer::reclaim_if_asked() {
  const uint64_t asked = parts_.ring.header().reclaims.load(std::memory_order_acquire);
  if (asked == reclaims_ || !reclaim_idle()) return;
  reclaims_ = asked;
  deferred_.push_back({Deferred::Kind::kReclaimed, entered_, 0, 0});
  run_deferred();
}

// What the program has freed and not taken back. A task of which nothing else is left ends: the program announces
// another when it comes back. False where the ring has something that comes before the task's end.
bool Issuer::reclaim_idle() {
  if (!gate_.serving()) return true;
  const uint64_t serial = task_serial_;
  if (idle_.task_offered(serial) && !is_quiet()) return false;
  const bool ends = idle_.take_task(serial);
  // An honest program has waited for what used them; the device may still be at work on something else.
  idle_.take_segments([this](uint64_t number) { return segments_.mapped(number); },
                      [this](uint64_t number) {
                        deferred_.push_back({Deferred::Kind::kReclaim, entered_, 0, number});
                      });
  if (!deferred_.empty()) run_deferred();
  if (ends) finish_task(0);
  return true;
}

void Issuer::run_deferred() {
  while (!deferred_.empty() && deferred_.front().after <= parts_.progress.committed()) {
    const Deferred deferred = deferred_.front();
    deferred_.pop_front();
    carry_out(deferred);
  }
  // Ask to be woken, then look once more: the watermark may have passed in between.
  parts_.progress.wake_issuer_at(deferred_.empty() ? Progress::kNever : deferred_.front().after);
  if (!deferred_.empty() && deferred_.front().after <= parts_.progress.committed()) run_deferred();
}

void Issuer::carry_out(const Deferred& deferred) {
  if (deferred.kind == Deferred::Kind::kReclaimed) return parts_.commit.freed(0);
  if (deferred.kind == Deferred::Kind::kTaskEnd) return finish_task(deferred.sequence);
  const auto unmapped = segments_.unmap(deferred.segment);
  if (!unmapped) logger("worker")->warn("free: {}", unmapped.error().text);
  if (deferred.kind == Deferred::Kind::kReleaseHost) return;
  // Unmapped before the free is committed: after that the client may use the address for another segment.
  if (unmapped) parts_.commit.freed(deferred.segment);
  if (deferred.kind == Deferred::Kind::kFree) parts_.progress.finish(deferred.sequence);
}

void Issuer::finish_host_calls() {
  std::erase_if(host_calls_, [this](const HostCall& call) {
    if (!has_returned(parts_, call) || !may_release(call)) return false;
    if (counts_) {
      held_.release({call.stream, call.sequence});
      parts_.in_flight.release({call.stream, call.sequence});
    }
    const auto released = parts_.context.release(call.sequence);
    if (!released) parts_.fault.raise(refusal_of("host call", released.error()));
    parts_.progress.finish(call.sequence);
    return true;
  });
  parts_.epoch.host_calls(host_calls_.size());
}

}  // namespace heddle::worker
