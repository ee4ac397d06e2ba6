#pragma once

#include <atomic>
#include <functional>

#include "cli/batch/batch_result.h"
#include "cli/daemon_link.h"

namespace heddle::cli {

struct RunnerOptions {
  int workers = 1;               // programs that run at once
  std::string output_directory;  // each job's output goes to NAME.log there
};

// How far a batch is, for whoever shows it.
struct Progress {
  int total = 0, running = 0, completed = 0, crashed = 0;
  Duration elapsed{};
};

// Runs the jobs in order, `workers` at a time, as the paper's pool of workers does (papers/case.txt V-A): each takes
// the next job when its last has ended. `show` is called on every change and at least once a second. Once `stop` is
// set, running programs are ended and the rest is not started.
Result<std::vector<JobResult>> run_jobs(const std::vector<BatchJob>& jobs, const RunnerOptions& options,
                                        const std::atomic<bool>& stop,
                                        const std::function<void(const Progress&)>& show);

}  // namespace heddle::cli
