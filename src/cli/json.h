#pragma once

#include <nlohmann/json.hpp>

#include "core/result.h"

namespace heddle::cli {

// Keys keep the order in which they were written, so that output reads as designed.
using Json = nlohmann::ordered_json;

// The text as JSON; an error where it is none.
Result<Json> parse_json(const std::string& text);

}  // namespace heddle::cli
