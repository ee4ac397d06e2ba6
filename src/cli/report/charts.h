#pragma once

#include <string>

#include "cli/report/report_run.h"

namespace heddle::cli {

// Charts of one run as SVG elements, all of the same width and with the same axis of time. Of what is more than a page
// can show they show a part, and say so.

// Each device's tasks over time; those that are there together stand in rows.
std::string timeline_chart(const ReportRun& run);
// What kernels of each group had of all devices' time, over time, one above the other.
std::string shares_chart(const ReportRun& run);
// How long each task waited, by when its waiting began.
std::string waits_chart(const ReportRun& run);

// Markup's own characters in a text, written so that they are none.
std::string escaped(const std::string& text);
// Of the group's bars, lines and dots.
std::string colour_of(size_t group);

}  // namespace heddle::cli
