#pragma once

#include <array>
#include <vector>

#include "device/device.h"
#include "protocol/ring_memory.h"
#include "worker/progress.h"

namespace heddle::worker {

// The session's streams on the device: made at first use as the ring's stream table says, unmade once the client has
// let go of the slot. Issuer's thread only.
class Streams {
 public:
  Streams(device::Context& context, const protocol::RingMemory& ring, const Progress& progress)
      : context_(context), ring_(ring), progress_(progress) {}

  // Makes the stream exist with the flags that its slot has now. A slot that was given to a new stream while old work
  // is still in flight keeps the old flags until that is done; clients wait before they use a slot again.
  Status prepare(uint32_t stream);
  // Whether a record that needs nothing but its turn could be done at once: nothing earlier of the stream, nor of what
  // the stream must wait for by the rules of the legacy default stream, is unfinished. `sequence` is the record's.
  bool has_turn(uint32_t stream, uint64_t sequence) const;

 private:
  struct Made {
    bool exists = false, blocking = true;
    int32_t priority = 0;
  };
  Status make(uint32_t stream, const Made& wanted);
  void sweep();

  device::Context& context_;
  const protocol::RingMemory& ring_;
  const Progress& progress_;
  std::array<Made, protocol::kMaxStreams> made_{};
  std::vector<uint32_t> existing_;
};

}  // namespace heddle::worker
