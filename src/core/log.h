#pragma once

#include <spdlog/spdlog.h>

#include <memory>
#include <string>

#include "core/result.h"
#include "core/units.h"

// Logging for heddled, workers and the CLI. Never linked into a tenant's process.
namespace heddle {

// Sends the log to `path` (stderr where it is empty) at `level` (trace, debug, info, warn, error, off). A file keeps at
// most `most` bytes, and its forerunner, path.1, as much. Lines of one kind are kept to a budget (log_budget.h).
Status open_log(const std::string& path, const std::string& level, Bytes most = Bytes{64 * kMiB});

// The logger of one room or process; lines carry its name. Made at first use, never null.
std::shared_ptr<spdlog::logger> logger(const std::string& room);

}  // namespace heddle
