#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "simulator/outcome.h"

namespace heddle::cli {

// What a simulation tells of tasks that were launched with a part of their memory on the host, and of idle jobs that
// gave way.

// As `heddle sim --json` has it; times are in seconds.
Json eager_json(const simulator::EagerUse& eager);
Json swap_json(const simulator::SwapUse& swap);

// Titles and cells of a table.
const std::vector<std::string>& eager_columns();
std::vector<std::string> eager_row(const simulator::EagerUse& eager);
const std::vector<std::string>& swap_columns();
std::vector<std::string> swap_row(const simulator::SwapUse& swap);

}  // namespace heddle::cli
