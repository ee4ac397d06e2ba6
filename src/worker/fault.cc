#include "worker/fault.h"

#include "core/log.h"

namespace heddle::worker {

Fault::Fault(protocol::RingMemory& ring, Commit& commit, Printer& printer, bool shared)
    : ring_(ring),
      commit_(commit),
      printer_(printer),
      shared_(shared),
      state_(ring.header().fault.load(std::memory_order_acquire) != 0 ? State::kRaised : State::kNone) {}

void Fault::raise(const Refusal& refusal) {
  std::lock_guard lock(mutex_);
  if (raised()) return;
  if (shared_ && refusal.device_lost) return hold_back(refusal);
  const Refusal& first = held_back() ? held_back_ : refusal;
  logger("worker")->warn("session fault {}: {}", first.cuda_error, first.text);
  printer_.collect();
  commit_.fault(first);
  state_.store(State::kRaised, std::memory_order_release);
  commit_.ring_client();
  protocol::ring_bell(ring_.header().to_worker);  // the issuer lets go of what it holds
}

void Fault::hold_back(const Refusal& refusal) {
  if (held_back()) return;
  logger("worker")->warn("fault {} of this program or another: {}", refusal.cuda_error, refusal.text);
  printer_.collect();
  held_back_ = refusal;
  state_.store(State::kHeldBack, std::memory_order_release);
  commit_.possible_fault(refusal);
}

}  // namespace heddle::worker
