#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "core/ids.h"
#include "core/units.h"

namespace heddle::policy {

// How a device serves several programs.
enum class DeviceSharing {
  kConcurrent,  // kernels of several run side by side
  kTimeSliced,  // the hardware takes turns
  kLeased,      // a dispatch policy lends it to one after the other
};

// What a batch sees of the pool of devices when it asks whether to start another job.
struct PoolUse {
  uint32_t devices = 0;
  uint64_t max_warps = 0;  // of all devices
  uint64_t warps = 0;      // of all tasks that have a device, each counted as if alone
  uint32_t tasks = 0;      // that have a device, whosever they are
  uint32_t waiting = 0;    // jobs of this batch with a task that waits for a device or for more memory
  double busy_ns = 0;      // a total over all tasks, present and past: when each had work on a device. May begin anew
  DeviceSharing sharing = DeviceSharing::kConcurrent;
};

struct AdmissionLimits {
  uint32_t most = UINT32_MAX;  // jobs at once
  Bytes host_memory;           // that all jobs together may need; 0: any
  bool binds_jobs = false;     // the placement policy binds a job to a device for its life (Scope::kSession)
};

// How many jobs of a batch run at once: "the number of workers", which CASE (papers/case.txt, V-A) finds by trying for
// each model of GPU, 5 a P100 and 4 a V100, and leaves open otherwise. Here another job is started as long as
//
//   waiting   fewer than 4 a device wait. More bring nothing to choose from, and need memory of the host. Fewer than 2
//             where they are bound to a device already, and may wait there while another falls idle
//   load      tasks use less than 5 times the pool, or where devices are lent less than 0.95 of it, since more than
//             all of it cannot be measured there; but with fewer than 5 tasks a device another is started. Used is
//               duty * warps of all tasks / warps of the pool    where kernels run side by side
//               duty * tasks / devices                           otherwise
//   limits    fewer than `most` run, and all of them need no more than the host's memory if each needs as much as the
//             largest so far
//
// duty is the part of the time in which a task has work on its device: what all tasks were busy since the last look,
// over the time that they had a device. Without it, jobs that compute on the host most of the time would count as if
// they filled the devices. A job that was started and has no task yet counts as one that waits, for a second: so long
// may its process take to begin. One job always runs.
//
// The figures were found by simulation (docs/results/2026-11-24-workers.md says what else was tried). Pools of several
// models count as one: where jobs ask for one of them only, what is free on the others is taken for theirs.
//
// Pure state, as a policy: `heddle batch` and the simulator ask the same object, at each job's start and end and when
// next() has come.
class JobAdmission {
 public:
  explicit JobAdmission(AdmissionLimits limits = {}) : limits_(limits) {}

  void started(JobId job, TimePoint now);
  void announced(JobId job);  // it has, or had, a task. May be said again
  void ended(JobId job);
  void needed(Bytes host_memory);  // what a job was seen to need of the host's memory

  // What the pool is used for now. Say it before admits() is asked, and when next() has come.
  void look(const PoolUse& use, TimePoint now);
  bool admits(TimePoint now) const;
  // When to look and to ask again, if no job starts or ends before.
  TimePoint next(TimePoint now) const;

 private:
  uint32_t jobs_that_wait(TimePoint now) const;
  bool has_spare_capacity() const;
  bool within_limits() const;
  TimePoint duty_due() const;

  const AdmissionLimits limits_;
  uint32_t running_ = 0;
  Bytes largest_{};
  std::map<JobId, TimePoint> silent_;  // jobs without a task so far, by when they were started
  PoolUse use_;                        // as it was at `looked_`
  std::optional<TimePoint> looked_;
  TimePoint since_{};  // duty is measured from here on
  double busy_then_ns_ = 0;
  double had_ns_ = 0;           // for which tasks had a device since then, over all of them
  std::optional<double> duty_;  // none: it has not been measured
};

}  // namespace heddle::policy
