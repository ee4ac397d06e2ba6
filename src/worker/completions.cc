#include "worker/completions.h"

#include <algorithm>

#include "core/clock.h"

namespace heddle::worker {

void Completions::run() {
  while (!stopping_.load(std::memory_order_acquire)) {
    const size_t count = parts_.context.completions(batch_, Duration(-1));
    take(std::span(batch_).first(count));
  }
}

void Completions::stop() {
  stopping_.store(true, std::memory_order_release);
  parts_.context.wake();
}

void Completions::take(std::span<const device::Completion> batch) {
  const auto is_failed = [](const device::Completion& completion) { return completion.cuda_error != 0; };
  if (!held_back_.empty() || std::any_of(batch.begin(), batch.end(), is_failed)) {
    if (hold_back(batch)) return;
    batch = held_back_;
  }
  show(batch);
  held_back_.clear();
}

// What the device says from its fault on is nothing that the program has done, as long as the fault is held back.
bool Completions::hold_back(std::span<const device::Completion> batch) {
  for (const device::Completion& completion : batch) {
    if (completion.cuda_error != 0) raise(completion);
    held_back_.push_back(completion);
  }
  return parts_.fault.held_back();
}

void Completions::show(std::span<const device::Completion> batch) {
  finished_.clear();
  done_.clear();
  took_.clear();
  for (const device::Completion& completion : batch) {
    if (completion.tag & OwnCopies::kTag) {
      parts_.own_copies.done(completion);
      continue;
    }
    const Pending& pending = parts_.progress.pending(completion.tag);
    if (pending.type == protocol::RecordType::kHostCall) {
      reach_host_call(completion.tag);
      continue;
    }
    done_.push_back({pending.type, pending.bytes, completion.started, completion.ended, completion.overrun_ns,
                     pending.unprotected});
    const bool timed = completion.ended != TimePoint{};
    if (timed && pending.timed.what != 0) took_.push_back({pending.timed, completion.ended - completion.started});
    finished_.push_back({completion.tag, timed ? completion.ended : MonotonicClock().now()});
  }
  parts_.usage.count(done_);
  parts_.long_work.took(took_);
  if (parts_.in_flight.any()) end_in_flight(batch);
  parts_.progress.finish(finished_);
  parts_.usage.end_burst_at(parts_.progress.completed());
}

// Behind the usage, which heddled reads when a lease comes back; before the program learns of the end, and may begin
// its next burst.
void Completions::end_in_flight(std::span<const device::Completion> batch) {
  ended_.clear();
  for (const device::Completion& completion : batch) {
    if (completion.tag & OwnCopies::kTag) continue;
    ended_.push_back({completion.tag, completion.ended - completion.started});
  }
  parts_.in_flight.done(ended_);
  if (parts_.in_flight.take_awaited()) protocol::ring_bell(parts_.ring.header().to_worker);
}

void Completions::raise(const device::Completion& completion) {
  const Refusal refusal{completion.cuda_error, completion.text, completion.device_lost};
  parts_.fault.raise(refusal);
}

// The issuer finishes the record, once the client's call has returned, or at once where the session has failed.
void Completions::reach_host_call(uint64_t sequence) {
  parts_.progress.reach_host_call(sequence);
  if (parts_.fault.raised()) protocol::ring_bell(parts_.ring.header().to_worker);
}

}  // namespace heddle::worker
