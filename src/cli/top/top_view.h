#pragma once

#include "cli/json.h"
#include "core/units.h"

namespace heddle::cli {

// heddled's answers to `devices` and `ps` at one moment.
struct TopSample {
  TimePoint at{};
  Json devices = Json::object(), ps = Json::object();
};

// What `heddle top` shows, as it prints it with --json: devices and jobs, busy shares over the time between the two
// samples. A share is that of the time in which a kernel, library call or fill was on a device; several that ran side
// by side count each, so that a device's and a job's may exceed 1. Null where the earlier sample has no such job.
Json top_object(const TopSample& before, const TopSample& now);

// The same for a terminal of so many columns and lines; 0: as many as it takes.
std::string top_text(const Json& object, size_t columns, size_t lines);

}  // namespace heddle::cli
