#include "daemon/open_lease.h"

#include "protocol/bell.h"

namespace heddle::daemon {

using State = protocol::Lease::State;

bool may_be_promoted(const Session& session, const VirtualDevice& device) {
  return device.task && !device.task->keeps_on_host && bytes_on_host(session, device).value != 0;
}

void write_open_lease(const Session& session, VirtualDevice& device, Duration window) {
  if (!device.control) return;
  protocol::Lease before;
  device.control->read_lease(before);
  protocol::Lease lease{.generation = before.generation};
  if (may_be_promoted(session, device)) {
    // As if others waited for the device: its worker is never far ahead then.
    lease = {.state = State::kHeld, .wanted = true, .window_ns = static_cast<uint64_t>(window.count())};
    const bool stands = before.state == State::kHeld && before.wanted && before.until_ns == lease.until_ns;
    lease.generation = before.generation + (stands ? 0 : 1);
  }
  if (lease.word() == before.word()) return;
  device.control->write_lease(lease);
  if (device.ring) protocol::ring_bell(device.ring->header().to_worker);
}

}  // namespace heddle::daemon
