#pragma once

#include <nlohmann/json.hpp>

#include "core/result.h"

namespace heddle::cli {

// Keys keep the order in which they were written, so that output reads as designed.
using Json = nlohmann::ordered_json;

// The text as JSON; an error where it is none.
Result<Json> parse_json(const std::string& text);

// Strings may be tenants' texts: only printable ASCII comes out, the rest as \u and its number, and bytes that are no
// UTF-8 as U+FFFD. On one line where `indent` is negative.
std::string json_text(const Json& json, int indent = -1);

}  // namespace heddle::cli
