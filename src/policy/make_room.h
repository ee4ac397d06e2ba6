#pragma once

#include <vector>

#include "policy/deadlock.h"

namespace heddle::policy {

// A running task that could leave its device.
struct MayLeave {
  TaskId task;
  SessionId session;
};

// Which of these would have to leave one device so that the request could go: the device where the fewest bytes do it,
// then the lowest id. Empty where none do.
//
// Placement itself says what goes, on a copy of the state, so this holds for every policy. Of the tasks on a device the
// largest leave until one more is enough, and of those the smallest. Work, for T tasks on a device: one attempt where
// all of them are not enough, else at most T for each that leaves, each on a copy of the state.
std::vector<TaskId> make_room(const PlacementState& state, const Blocked& request, const std::vector<MayLeave>& tasks);

}  // namespace heddle::policy
