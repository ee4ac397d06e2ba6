#pragma once

#include "device/device.h"
#include "protocol/ring_memory.h"
#include "worker/refusal.h"

namespace heddle::worker {

// The session's texture and surface objects on the device, as the ring's texture table says. Issuer's thread only.
class Textures {
 public:
  Textures(device::Context& context, const protocol::RingMemory& ring) : context_(context), ring_(ring) {}

  // A new worker: what came with a record that is committed, and has not gone with one. The rest is left to its record.
  Checked<void> restore(uint64_t committed);
  // The records kTexture and kTextureGone.
  Checked<void> created(uint64_t slot);
  Checked<void> gone(uint64_t slot);

 private:
  Checked<void> set(uint64_t handle, const Texture& texture);

  device::Context& context_;
  const protocol::RingMemory& ring_;
};

}  // namespace heddle::worker
