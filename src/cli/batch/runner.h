#pragma once

#include <atomic>
#include <functional>

#include "cli/batch/batch_result.h"
#include "cli/batch/concurrency.h"
#include "cli/daemon_link.h"

namespace heddle::cli {

// How far a batch is, for whoever shows it.
struct Progress {
  int total = 0, running = 0, completed = 0, crashed = 0;
  Duration elapsed{};
  std::string unreached;  // why heddled cannot be reached, while the next job waits for it; empty: it can
};

// Runs the jobs in order, as many at a time as `concurrency` admits; with a fixed number that is the paper's pool of
// workers, each of which takes the next job when its last has ended (papers/case.txt V-A). A job's output goes to
// NAME.log in `directory`. `show` is called on every change and at least once a second. Once `stop` is set, running
// programs are ended and the rest is not started.
//
// A job that heddled cannot be reached for is started once it can: for as long as others run, and for half a minute
// where none does. None is started here in its place, as nobody knows its configuration here.
Result<std::vector<JobResult>> run_jobs(const std::vector<BatchJob>& jobs, const std::string& directory,
                                        Concurrency& concurrency, const std::atomic<bool>& stop,
                                        const std::function<void(const Progress&)>& show);

}  // namespace heddle::cli
