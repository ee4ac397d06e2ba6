#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/units.h"

namespace heddle {

inline constexpr std::string_view kUserFacing = "user-facing", kBatch = "batch";  // the classes of jobs, as people say
inline constexpr Duration kLeastSlo = std::chrono::milliseconds(1), kLargestSlo = std::chrono::hours(1);

struct WrongClass {
  const char* key;   // "class" or "slo"
  std::string text;  // names the value and what is allowed
};

// What is wrong, if anything is, with the class that a job says it is of, and with the SLO of its requests, if it says
// one: only a user-facing job has requests.
std::optional<WrongClass> wrong_class(std::string_view name, std::optional<Duration> slo);

}  // namespace heddle
