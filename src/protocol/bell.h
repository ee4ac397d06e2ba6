#pragma once

#include <optional>

#include "core/spare_processors.h"
#include "core/units.h"
#include "protocol/ring.h"

namespace heddle::protocol {

// Wakes everybody that sleeps on the bell, in any process. Call it after publishing what they wait for.
void ring_bell(Bell& bell);

// Sleeps until the bell is rung after `read` was taken, or `timeout` passes (forever where negative).
// Use:  for (;;) { auto seen = read_bell(bell); if (condition()) break; wait_bell(bell, seen, timeout); }
uint32_t read_bell(const Bell& bell);
// False when the time ran out.
bool wait_bell(Bell& bell, uint32_t seen, Duration timeout);
// The same, but looks at the bell before it sleeps, for as long as there are processors to spare (spare_processors.h):
// for a waiter with nothing else to do.
bool watch_bell(Bell& bell, uint32_t seen, Duration timeout, WaitMode mode = WaitMode::kAuto);

}  // namespace heddle::protocol
