#pragma once

#include <nlohmann/json_fwd.hpp>

#include "daemon/registry.h"

namespace heddle::daemon {

// What workers measured, as their control pages say it and heddled adds it up. Totals add; the largest bursts and gaps
// are those of any; what is under way counts for a virtual device only while a worker serves it.

// Of the virtual device, since its ring was made. Where the page cannot be read just now, as when its last task ended.
protocol::Usage usage_of(const VirtualDevice& device);
// Of all its virtual devices.
protocol::Usage usage_of(const Session& session);
// Of all its sessions, those that are over included.
protocol::Usage usage_of(const Job& job, Registry& registry);

// By device: of tasks that have ended there since heddled was started, and of those that are there now.
std::vector<protocol::Usage> usage_by_device(const Registry& registry);

// Closes the account of the virtual device's task, which ends: what was measured since the last one was closed, also
// added to the device's.
protocol::Usage close_account(VirtualDevice& device, Registry& registry);

void add(protocol::Usage& sum, const protocol::Usage& more);
// The totals alone.
protocol::Usage difference(const protocol::Usage& later, const protocol::Usage& earlier);

// As `heddle ps --json` shows it. `busy_ns` counts what is under way, too.
nlohmann::json usage_json(const protocol::Usage& usage, TimePoint now);

}  // namespace heddle::daemon
