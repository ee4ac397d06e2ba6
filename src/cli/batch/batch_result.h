#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/batch/jobs_file.h"
#include "cli/json.h"

namespace heddle::cli {

// What became of one job. Times are since the batch began.
struct JobResult {
  BatchJob job;
  uint64_t heddle_job = 0;  // its number under heddled
  Duration started{}, ended{};
  std::optional<Duration> asked;    // when it first asked for a device
  std::optional<Duration> granted;  // when it first got a device
  bool finished = false;
  int exit_status = 0;  // 128 + n: ended by signal n
  std::string last_line;
  // What its workers measured.
  uint64_t launches = 0, kernel_ns = 0, overrun_ns = 0;

  bool crashed() const { return finished && exit_status != 0; }
};

struct BatchResult {
  std::string policy;
  std::string workers_asked;  // "auto", or a number
  uint32_t workers = 0;       // programs that ran at once at most
  Duration makespan{};
  std::vector<JobResult> jobs;
};

// The figures of one batch, as the table shows them.
struct BatchSummary {
  int completed = 0, crashed = 0;
  double throughput_per_minute = 0;  // completed jobs over the makespan
  Duration makespan{}, mean_turnaround{}, mean_wait{};
  std::optional<double> kernel_slowdown;  // 0.02: kernels took 2 % longer than alone
  double overrun = 0;  // share of kernel time by which the host was late; over 2 % timings are invalid
};

// Kernel time alone, by job name: from a batch in which every job had its device to itself.
using KernelBaseline = std::vector<std::pair<std::string, uint64_t>>;

BatchSummary summarise(const BatchResult& result, const KernelBaseline& baseline);
Json to_json(const BatchResult& result, const BatchSummary& summary);
// The kernel times of a batch in which every job had its device to itself.
KernelBaseline baseline_of(const BatchResult& result);
// The baseline in a file that `heddle batch --json` wrote.
Result<KernelBaseline> read_baseline(const std::string& path);

// Past this share of overrun a software device was not the device that it claims to be.
inline constexpr double kMostOverrun = 0.02;

}  // namespace heddle::cli
