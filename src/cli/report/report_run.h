#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace heddle::cli {

// What a report shows of one run of a queue or of a scenario. Times are seconds since it began.
struct ReportJob {
  std::string name;
  size_t group = 0;  // of ReportRun::groups
  double arrived = 0;
  std::optional<double> started, ended;
  std::optional<double> turnaround;  // from arrival to end, the mean where it ran several times
  double waited = 0, busy = 0;       // for memory and a device; that kernels of it were on one
  uint64_t runs = 0;                 // that were completed
  std::string note;                  // why it was refused, how it crashed
};

// A task's stay on a device.
struct ReportStay {
  size_t job = 0, device = 0;
  double begin = 0, end = 0;
  double waited = 0;  // before it
  std::string why;    // it came there; may be empty
};

// Kernels of a job were on a device for `part` of that time.
struct ReportUse {
  size_t job = 0, device = 0;
  double begin = 0, end = 0, part = 1;
};

// Jobs that are alike: what a share is told of.
struct ReportGroup {
  std::string name;
  double weight = 1;  // of each of its jobs
};

struct ReportRun {
  std::string name;  // "mgb-warps, fs"
  double length = 0;
  std::vector<std::pair<std::string, std::string>> figures;  // a row of the table of runs: the same names in each run
  std::vector<std::string> devices;
  std::vector<ReportGroup> groups;
  std::vector<ReportJob> jobs;
  std::vector<ReportStay> stays;
  std::vector<ReportUse> uses;
};

}  // namespace heddle::cli
