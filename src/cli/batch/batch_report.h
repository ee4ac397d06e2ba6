#pragma once

#include "cli/batch/trace.h"
#include "cli/report/report_run.h"

namespace heddle::cli {

// What a report shows of a batch, but for its name and figures. Jobs arrive when the batch begins; what kernels used is
// known of whole tasks only, and is spread evenly over them.
ReportRun report_of(const BatchResult& result, const std::vector<TraceEvent>& events,
                    const std::vector<std::string>& device_names, TimePoint begin);

}  // namespace heddle::cli
