#pragma once

#include "cli/report/report_run.h"
#include "core/result.h"

namespace heddle::cli {

// One HTML page that needs nothing else: no script, no font, no picture from elsewhere.
std::string report_page(const std::string& title, const std::vector<ReportRun>& runs);
// kSystem where the file cannot be written.
Status write_report(const std::string& path, const std::string& title, const std::vector<ReportRun>& runs);

}  // namespace heddle::cli
