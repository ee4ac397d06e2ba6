#pragma once

#include <cstddef>

#include "device/device.h"
#include "protocol/ring_memory.h"
#include "worker/commit.h"

namespace heddle::worker {

// Whether the device itself tells the program how far a stream is (device::Context::report_to), into the ring's stream
// table: then nobody stands between the device and a program that waits.
//
// It may where nothing else has to happen before the program sees an end. Where work is held back until its commit,
// the commit says it; where the device is lent to one ring after the other, what was measured must stand on the control
// page first (completions.cc). The worker's own books follow some microseconds later: should the worker die in
// between, the work counts as under way, although the program has gone on (docs/revocation.md).
//
// Issuer's thread only.
class Reports {
 public:
  Reports(device::Context& context, const protocol::RingMemory& ring, const Commit& commit)
      : context_(context), commit_(commit) {
    const auto streams = ring.streams();
    context_.report_to({reinterpret_cast<uintptr_t>(&streams[0].device_completed), sizeof(protocol::StreamSlot)},
                       Bytes{streams.size_bytes() - offsetof(protocol::StreamSlot, device_completed)});
  }

  void leased(bool leased) { leased_ = leased; }
  // Before anything is handed over, and before a flush: of what was handed over until then.
  void look() {
    const bool on = !leased_ && !commit_.holding();
    if (on != std::exchange(on_, on)) context_.reports(on);
  }

 private:
  device::Context& context_;
  const Commit& commit_;
  bool leased_ = false, on_ = false;
};

}  // namespace heddle::worker
