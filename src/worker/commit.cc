#include "worker/commit.h"

namespace heddle::worker {

void Commit::fault(const Refusal& refusal) {
  protocol::RingHeader& header = ring_.header();
  protocol::set_text(header.fault_text, refusal.text);
  header.fault.store(refusal.cuda_error, std::memory_order_release);
  protocol::WorkerFault message{.cuda_error = refusal.cuda_error, .device_lost = refusal.device_lost};
  protocol::set_text(message.text, refusal.text);
  outbox_.put(message);
}

}  // namespace heddle::worker
