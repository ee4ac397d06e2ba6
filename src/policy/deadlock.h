#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/placement_state.h"
#include "policy/waiting.h"

namespace heddle::policy {

// A request that waits, with all that is needed to try it out.
struct Blocked {
  WaitKey key;
  RequestKind kind = RequestKind::kTask;
  Request request;  // without workers and reservation; an extension's memory is what it adds
};

struct Deadlock {
  size_t victim = 0;   // index of the youngest request in it
  std::string reason;  // who holds what and waits for what
  bool alone = false;  // one session that stands in its own way
};

// Looks for requests that no event can ever serve, because everybody who could free what they need waits too.
//
// Graph reduction, as for resources with several instances: assume that every session without a waiting request runs to
// its end and returns what it holds; then every session all of whose requests fit by then, and so on. Who is left is
// stuck. Among those, an edge leads from each session to those that hold something on a device it waits for; a
// component without an edge to the outside is a deadlock (a session may be one by itself), and the others only wait
// behind one. The victim is the youngest stuck request in a deadlock.
//
// Placement itself says what fits, on a copy of the state, so this holds for every policy. Work, for S sessions that
// hold something and wait and D devices: one copy of the state, at most S*S/2 looks at whether any device has the
// memory, an attempt where one has, a further copy for each attempt of a session with several requests; S*D edges.
std::optional<Deadlock> find_deadlock(const PlacementState& state, const std::vector<Blocked>& blocked);

}  // namespace heddle::policy
