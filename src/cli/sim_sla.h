#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "simulator/outcome.h"

namespace heddle::cli {

// What a simulation tells of requests of user-facing jobs, and of what devices that were taken back cost batch jobs.

// Requests, as `heddle sim --json` has them; what of them is met is a part, times are in seconds.
Json requests_json(const policy::Sla& user_facing);
Json revocations_json(const policy::Sla& batch);

// Titles and cells of a table.
const std::vector<std::string>& request_columns();
std::vector<std::string> request_row(const simulator::Outcome& outcome);

}  // namespace heddle::cli
