#pragma once

#include "policy/task.h"
#include "protocol/messages.h"

namespace heddle::daemon {

// What the scheduler is told of a need that a program has announced.
//
// A task that begins with a copy too large to wait in the ring has no launch yet. Until it has one it counts as filling
// its device: counted as nothing, any number of them would go to one device while others stand idle.
inline policy::ComputeNeed need_of(const protocol::ComputeNeed& need) {
  constexpr policy::ComputeNeed kNotKnownYet{UINT32_MAX, 256, 0, {}};
  if (need.blocks == 0) return kNotKnownYet;
  return {need.blocks, need.threads_per_block, need.registers_per_thread, Bytes{need.shared_bytes_per_block}};
}

}  // namespace heddle::daemon
