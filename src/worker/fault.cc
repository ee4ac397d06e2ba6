#include "worker/fault.h"

#include "core/log.h"

namespace heddle::worker {

Fault::Fault(protocol::RingMemory& ring, Outbox& outbox)
    : ring_(ring), outbox_(outbox), raised_(ring.header().fault.load(std::memory_order_acquire) != 0) {}

void Fault::raise(const Refusal& refusal) {
  std::lock_guard lock(mutex_);
  if (raised()) return;
  logger("worker")->warn("session fault {}: {}", refusal.cuda_error, refusal.text);
  protocol::RingHeader& header = ring_.header();
  protocol::set_text(header.fault_text, refusal.text);
  header.fault.store(refusal.cuda_error, std::memory_order_release);
  protocol::WorkerFault message{.cuda_error = refusal.cuda_error};
  protocol::set_text(message.text, refusal.text);
  outbox_.put(message);
  raised_.store(true, std::memory_order_release);
  protocol::ring_bell(header.to_client);
  protocol::ring_bell(header.to_worker);  // the issuer lets go of what it holds
}

}  // namespace heddle::worker
