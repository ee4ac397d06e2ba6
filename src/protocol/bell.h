#pragma once

#include <optional>

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
// The same, but looks at the bell for some microseconds before it sleeps, and for longer (spare_watch) where there are
// processors to spare: for a waiter with nothing else to do whose answer is often there sooner than a sleeper could be
// woken.
bool watch_bell(Bell& bell, uint32_t seen, Duration timeout);
// How long this machine can afford to look; zero where it has few processors.
Duration spare_watch();

}  // namespace heddle::protocol
