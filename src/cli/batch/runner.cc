#include "cli/batch/runner.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "cli/tenant.h"
#include "core/clock.h"

namespace heddle::cli {
namespace {

constexpr Duration kTick = std::chrono::seconds(1);
constexpr Duration kStopGrace = std::chrono::seconds(5);
constexpr Duration kOutageLimit = std::chrono::seconds(30);  // a heddled that cannot be reached, while nothing runs
constexpr Duration kTryEvery = std::chrono::milliseconds(200);

struct Running {
  size_t index;
  pid_t pid;
  Fd pidfd;
  DaemonLink anchor;  // keeps the job open under heddled
};

std::string last_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

// As opposed to one that refuses.
bool says_unreached(const Error& error) {
  return error.code == ErrorCode::kPeerDied || error.code == ErrorCode::kTimeout ||
         error.code == ErrorCode::kNotFound || error.code == ErrorCode::kSystem;
}

class Runner {
 public:
  Runner(const std::vector<BatchJob>& jobs, const std::string& directory, Concurrency& concurrency,
         const std::function<void(const Progress&)>& show)
      : directory_(directory), concurrency_(concurrency), show_(show), begin_(clock_.now()) {
    for (const BatchJob& job : jobs) results_.push_back(JobResult{.job = job});
  }

  Result<std::vector<JobResult>> run(const std::atomic<bool>& stop) {
    std::optional<TimePoint> stopping;
    Status started;
    while (next_ < results_.size() || !running_.empty()) {
      if ((stop || !started) && !stopping) {
        stopping = clock_.now();
        signal_all(SIGTERM);
        next_ = results_.size();
      }
      if (stopping && clock_.now() - *stopping > kStopGrace) signal_all(SIGKILL);
      if (started) started = outlast(start_some());
      if (!started && !stopping) continue;
      show_(progress());
      const bool all_started = next_ == results_.size();
      wait_a_little(stopping ? kTick / 10 : all_started ? kTick : unreached_ ? kTryEvery : concurrency_.pause(kTick));
      reap();
    }
    show_(progress());
    if (!started) return tl::unexpected(std::move(started).error());
    return std::move(results_);
  }

 private:
  Duration elapsed() const { return clock_.now() - begin_; }
  std::string log_path(const JobResult& result) const { return directory_ + "/" + result.job.name + ".log"; }

  Status start_some() {
    while (next_ < results_.size()) {
      const Result<bool> admits = concurrency_.admits();
      if (!admits) return tl::unexpected(admits.error());
      if (!*admits) break;
      HEDDLE_TRY(start(next_));
      ++next_;
    }
    return {};
  }

  // What starting some came to, or nothing where heddled is still waited for.
  Status outlast(Status started) {
    if (started || !says_unreached(started.error())) {
      unreached_.reset();
      return started;
    }
    if (!unreached_) unreached_ = Outage{clock_.now(), {}};
    unreached_->why = started.error().text;
    if (running_.empty() && clock_.now() - unreached_->since >= kOutageLimit) return started;
    return {};
  }

  // A program that cannot be started is a crashed job.
  Status start(size_t index) {
    JobResult& result = results_[index];
    auto anchor = connect_to_running();
    if (!anchor) return tl::unexpected(std::move(anchor).error());
    auto job = open_job(*anchor, {result.job.name, result.job.memory, result.job.share});
    if (!job) return tl::unexpected(std::move(job).error());
    result.heddle_job = job->id;
    result.started = elapsed();
    TenantOptions tenant;
    tenant.command = result.job.command;
    tenant.job = *job;
    tenant.output_file = log_path(result);
    tenant.own_process_group = true;
    auto pid = start_tenant(tenant);
    if (!pid) {
      finish(result, 127);
      result.last_line = pid.error().text;
      return {};
    }
    concurrency_.started(job->id, *pid);
    Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
    running_.push_back(Running{index, *pid, std::move(pidfd), std::move(*anchor)});
    return {};
  }

  void finish(JobResult& result, int status) {
    result.finished = true;
    result.exit_status = status;
    result.ended = elapsed();
    (status == 0 ? completed_ : crashed_) += 1;
  }

  void wait_a_little(Duration most) const {
    std::vector<pollfd> ends;
    for (const Running& program : running_) ends.push_back({program.pidfd.get(), POLLIN, 0});
    ::poll(ends.data(), ends.size(),
           static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(most).count()));
  }

  void reap() {
    std::erase_if(running_, [this](const Running& program) {
      int status;
      rusage used;
      if (::wait4(program.pid, &status, WNOHANG, &used) != program.pid) return false;
      JobResult& result = results_[program.index];
      finish(result, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
      result.last_line = last_line_of(log_path(result));
      concurrency_.ended(result.heddle_job, Bytes{static_cast<uint64_t>(used.ru_maxrss) * kKiB});
      return true;
    });
  }

  void signal_all(int signal) const {
    for (const Running& program : running_) ::kill(-program.pid, signal);
  }

  Progress progress() const {
    return {
        static_cast<int>(results_.size()),           static_cast<int>(running_.size()), completed_, crashed_, elapsed(),
        unreached_ ? unreached_->why : std::string()};
  }

  const std::string& directory_;
  Concurrency& concurrency_;
  const std::function<void(const Progress&)>& show_;
  MonotonicClock clock_;
  TimePoint begin_;
  std::vector<JobResult> results_;
  std::vector<Running> running_;
  struct Outage {
    TimePoint since;
    std::string why;
  };
  std::optional<Outage> unreached_;  // since when, and why, heddled cannot be reached for the next job
  size_t next_ = 0;
  int completed_ = 0, crashed_ = 0;
};

}  // namespace

Result<std::vector<JobResult>> run_jobs(const std::vector<BatchJob>& jobs, const std::string& directory,
                                        Concurrency& concurrency, const std::atomic<bool>& stop,
                                        const std::function<void(const Progress&)>& show) {
  return Runner(jobs, directory, concurrency, show).run(stop);
}

}  // namespace heddle::cli
