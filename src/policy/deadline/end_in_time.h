#pragma once

#include <optional>
#include <vector>

#include "policy/deadline/model_state.h"

namespace heddle::policy {

using Requests = std::vector<const ModelState::Member*>;

// Whether the requests all end in time if they are put one after the other on the place that is free first. `free`:
// when each place is.
bool all_end_in_time(const ModelState& state, const Requests& requests, const std::vector<TimePoint>& free);

// The same for who loses something if that is not so: each takes as long as its like take at most, behind others that
// take as long as is expected.
bool surely_end_in_time(const ModelState& state, const Requests& requests, const std::vector<TimePoint>& free);

// When the place is free for the next request, where one that has it takes as long as its like take at most. None where
// it takes longer already.
std::optional<TimePoint> surely_free_at(const ModelState& state, const ModelState::Place& place, TimePoint now);

}  // namespace heddle::policy
