#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/units.h"
#include "policy/sla.h"

namespace heddle::simulator {

// What came of Eager Launch.
struct EagerUse {
  uint64_t launches = 0;    // of tasks, with a part of their memory on the host
  Bytes on_host;            // the parts, together
  uint64_t promotions = 0;  // copies of some of that to the device
  Bytes promoted;           // what they copied
  Duration moving{};        // that they took; the task does not compute meanwhile
  EagerUse& operator+=(const EagerUse& other);
};

// What came of jobs that gave way.
struct SwapUse {
  uint64_t count = 0;      // how often a job's memory has left its device
  uint64_t deadlocks = 0;  // how often for a deadlock, and not because it was idle
  Bytes moved;             // there and back
  Duration moving{};       // that copies took
  SwapUse& operator+=(const SwapUse& other);
};

// What became of one job.
struct JobOutcome {
  std::string name;
  size_t line = 0;                   // of the scenario's jobs, from 0
  TimePoint arrived{};               // times count from the beginning of the simulation
  std::optional<TimePoint> granted;  // its first task; none: it had not been at the horizon
  std::optional<TimePoint> ended;    // its last completed run; none: no run had ended at the horizon
  Duration turnaround{};             // from arrival to end, over all completed runs; a repeated run arrives at once
  Duration waited{};                 // for memory and a device, over all its tasks, up to the horizon
  Duration busy{};                   // that a kernel of it was on a device
  uint32_t runs = 0;                 // that were completed
  std::string refused;               // why; empty: it was not
  EagerUse eager;
  SwapUse swap;
};

// When tasks had devices and when kernels were on them, for people to look at. In the order of their ends.
struct Timeline {
  struct Stay {
    size_t job;  // of Outcome::jobs
    DeviceId device;
    TimePoint arrived, granted, ended;  // of the task; at the horizon, if it had not
  };
  struct Use {
    size_t job;
    DeviceId device;
    TimePoint begin, end;
  };
  std::vector<Stay> stays;
  std::vector<Use> uses;
};

struct Outcome {
  std::vector<JobOutcome> jobs;  // in the order in which they arrived
  std::vector<Duration> busy;    // by device: that any kernel was there
  Duration makespan{};           // until the last job ended, or the horizon
  uint64_t events = 0;           // of the simulation
  uint32_t most_at_once = 0;     // jobs that ran
  policy::Sla user_facing;       // requests, of jobs of that class
  policy::Sla batch;             // what others were busy with; under a deadline policy, what revocations cost them

  uint64_t completed() const;  // runs
  EagerUse eager() const;      // of all jobs
  SwapUse swap() const;
  double runs_per_second() const;
  Duration mean_turnaround() const;  // of completed runs
};

// Jain's index of the jobs' busy times by their weights: (sum x)^2 / (n sum x^2), x = busy / weight. 1: all alike; 1/n:
// one has everything. `weights` by line. Of nobody, 1. (Rain, 5.1.)
double jain_index(const Outcome& outcome, const std::vector<double>& weights);

// (1/n) sum of base time / time, over jobs that completed a run in both, in order: how much faster they are than in
// `base`. A job's time is the mean turnaround of its runs. (Rain, 5.1, weighted speedup.)
double weighted_speedup(const Outcome& outcome, const Outcome& base);

}  // namespace heddle::simulator
