#pragma once

#include "daemon/registry.h"

namespace heddle::daemon {

// Whether a part of the task's memory lies on the host and is to come to its device.
bool may_be_promoted(const Session& session, const VirtualDevice& device);

// What stands on a ring's control page (protocol::Lease) while its device is lent to nobody and everybody may issue:
// nothing, or as good as that. But where a part of the task's memory lies on the host, a lease without an end and with
// a bound on what may be in flight, `window`: the task is to come to a cut soon when that memory can be promoted
// (eager_tasks.h), and what its worker has handed to the device ends first, which would often be all of the program's
// kernels.
//
// Its kernels that would reach that memory then wait for a while before they do (worker/host_part.h).
void write_open_lease(const Session& session, VirtualDevice& device, Duration window);

}  // namespace heddle::daemon
