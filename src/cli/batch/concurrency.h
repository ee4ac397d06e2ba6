#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cli/daemon_link.h"
#include "core/clock.h"
#include "policy/job_admission.h"

namespace heddle::cli {

// How many of a batch's jobs run at once: a number, or as many as policy::JobAdmission admits by what heddled says.
class Concurrency {
 public:
  explicit Concurrency(uint32_t number) : number_(number) {}
  using Connect = std::function<Result<DaemonLink>()>;  // to heddled
  explicit Concurrency(policy::AdmissionLimits limits, Connect connect = connect_to_running)
      : admission_(limits), connect_(std::move(connect)) {}

  // Whether another job is to be started now. Asks heddled where that matters; fails where it cannot be reached.
  Result<bool> admits();
  void started(uint64_t job, pid_t process);
  // `most` is the largest amount of host memory that the job needed.
  void ended(uint64_t job, Bytes most);
  // How long to wait before admits() is asked again, if no job ends before.
  Duration pause(Duration most) const;
  uint32_t most_at_once() const { return most_at_once_; }

 private:
  Status look();

  const MonotonicClock clock_;
  uint32_t number_ = 0;
  std::optional<policy::JobAdmission> admission_;  // none: the number alone counts
  Connect connect_;
  std::optional<DaemonLink> link_;  // none: heddled was not reached, or not asked yet
  std::optional<TimePoint> looked_;
  std::map<JobId, pid_t> running_;
  uint32_t most_at_once_ = 0;
};

// What this machine and the placement policy set `heddle batch --workers auto` as limits: no more jobs than processors,
// but 5 a device in any case, and no more than its memory holds. `most`: what the user says instead of the former.
policy::AdmissionLimits admission_limits(const std::string& policy, size_t devices, std::optional<uint32_t> most);

}  // namespace heddle::cli
