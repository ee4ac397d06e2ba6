#pragma once

#include "cli/report/report_run.h"
#include "simulator/outcome.h"
#include "simulator/scenario.h"

namespace heddle::cli {

// What a report shows of a simulated run, but for its name and figures.
ReportRun report_of(const simulator::Scenario& scenario, const simulator::Outcome& outcome,
                    const simulator::Timeline& timeline);

}  // namespace heddle::cli
