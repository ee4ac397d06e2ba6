#pragma once

#include <string>

#include "daemon/registry.h"

namespace heddle::daemon {

// heddled's side of a ring's header. Texts come before codes, codes before the binding, the binding before the bell, so
// that whoever sees the later sees the earlier. A virtual device without a ring has nobody to tell.
void say_waiting(VirtualDevice& device);
void say_unbound(VirtualDevice& device);
// The task is away: the program tells heddled of its next record. Behind it heddled sees every record of which the
// program does not tell it.
void say_away(VirtualDevice& device);
void say_bound(VirtualDevice& device, uint64_t serial);
void say_idle_allowed(VirtualDevice& device, bool allowed);
// Whether the program has freed something that it keeps; has the worker give it back.
bool offers_idle(const Session& session, const VirtualDevice& device);
void ask_for_idle(VirtualDevice& device);
void say_failed(VirtualDevice& device, uint32_t cuda_error, const std::string& text);

}  // namespace heddle::daemon
