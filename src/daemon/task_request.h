#pragma once

#include "daemon/registry.h"

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

// How the scheduler is asked for a device for a task of the virtual device.
inline policy::TaskRequest request_for(const Session& session, const VirtualDevice& device, TaskId id, Bytes memory,
                                       const policy::ComputeNeed& need) {
  policy::TaskRequest request;
  request.id = id;
  request.session = session.id;
  request.job = session.job;
  request.virtual_device = device.index;
  request.memory = memory;
  request.compute = need;
  return request;
}

// For the task that the virtual device has, with all that is asked for or held there.
inline policy::TaskRequest request_of(const Session& session, const VirtualDevice& device) {
  return request_for(session, device, device.task->id, device.live, device.task->need);
}

}  // namespace heddle::daemon
