#pragma once

#include <nlohmann/json_fwd.hpp>

#include "daemon/registry.h"
#include "policy/service.h"

namespace heddle::daemon {

// What workers measured, as their control pages say it and heddled adds it up. Totals add; the largest bursts and gaps
// are those of any. `busy_ns` is with what is under way at `now`, which counts only while a worker serves the virtual
// device; of a sum `busy_since_ns` says only whether anything is (not 0).
//
// A worker belongs to its tenant, and may lie. Of a task busy and copy time are at most the time since it was granted,
// and totals never fall and never wrap.

// Of the virtual device, since its ring was made. Where the page cannot be read just now, as when its last task ended.
protocol::Usage usage_of(const VirtualDevice& device, TimePoint now);
// The same without what is under way. Only this is certain: of work behind a host call, which counts as under way, the
// device has nothing yet.
protocol::Usage usage_done(const VirtualDevice& device, TimePoint now);
// Of all its virtual devices.
protocol::Usage usage_of(const Session& session, TimePoint now);
// Of all its sessions, those that are over included.
protocol::Usage usage_of(const Job& job, Registry& registry, TimePoint now);

// By device: of tasks that have ended there since heddled was started, and of those that are there now.
std::vector<protocol::Usage> usage_by_device(const Registry& registry, TimePoint now);

// Closes the account of the virtual device's task, which ends: what was measured since the last one was closed, also
// added to the device's. Nothing is under way any more.
protocol::Usage close_account(VirtualDevice& device, Registry& registry, TimePoint now);

void add(protocol::Usage& sum, const protocol::Usage& more);
// The totals alone.
protocol::Usage difference(const protocol::Usage& later, const protocol::Usage& earlier);

// As policies see it.
policy::Service service_of(const protocol::Usage& usage);

// As `heddle ps --json` shows it. `told_busy_ns` is the most that was told before of what `usage` is of: what is handed
// over counts as under way until it is known when it began, and the total shown does not fall then.
nlohmann::json usage_json(const protocol::Usage& usage, uint64_t& told_busy_ns);

}  // namespace heddle::daemon
