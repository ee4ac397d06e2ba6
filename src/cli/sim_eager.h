#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "simulator/outcome.h"

namespace heddle::cli {

// What a simulation tells of tasks that were launched with a part of their memory on the host.

// As `heddle sim --json` has it; times are in seconds.
Json eager_json(const simulator::EagerUse& eager);

// Titles and cells of a table.
const std::vector<std::string>& eager_columns();
std::vector<std::string> eager_row(const simulator::EagerUse& eager);

}  // namespace heddle::cli
