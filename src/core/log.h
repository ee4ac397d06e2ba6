#pragma once

#include <spdlog/spdlog.h>

#include <memory>
#include <string>

#include "core/result.h"

// Logging for heddled, workers and the CLI. Never linked into a tenant's process.
namespace heddle {

// Sends the log to `path` (stderr where it is empty) at `level` (trace, debug, info, warn, error, off).
Status open_log(const std::string& path, const std::string& level);

// The logger of one room or process; lines carry its name. Made at first use, never null.
std::shared_ptr<spdlog::logger> logger(const std::string& room);

}  // namespace heddle
