#include "worker/fault.h"

#include "core/log.h"

namespace heddle::worker {

Fault::Fault(protocol::RingMemory& ring, Commit& commit, Printer& printer, bool shared)
    : ring_(ring),
      commit_(commit),
      printer_(printer),
      shared_(shared),
      raised_(ring.header().fault.load(std::memory_order_acquire) != 0) {}

void Fault::raise_of_device(const Refusal& refusal) {
  if (!shared_) return raise(refusal);
  publish({kCudaMpsClientTerminated, "another program's fault on the same GPU: " + refusal.text, true});
}

void Fault::raise(Refusal refusal) {
  if (shared_ && refusal.device_lost)
    refusal.text += "; under MPS a fault is every program's on the GPU: it may be another's";
  publish(refusal);
}

void Fault::publish(const Refusal& refusal) {
  std::lock_guard lock(mutex_);
  if (raised()) return;
  logger("worker")->warn("session fault {}: {}", refusal.cuda_error, refusal.text);
  printer_.collect();
  commit_.fault(refusal);
  raised_.store(true, std::memory_order_release);
  commit_.ring_client();
  protocol::ring_bell(ring_.header().to_worker);  // the issuer lets go of what it holds
}

}  // namespace heddle::worker
