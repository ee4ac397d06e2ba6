#pragma once

#include "simulator/world.h"

namespace heddle::simulator {

// The part of a world where jobs compute on the host: before their first task, between bursts, and behind their last
// task; each for so long, or for longer where there are fewer processors than jobs that compute (shared_host.h).
// Without state of its own.
class HostJobs {
 public:
  explicit HostJobs(World& world) : world_(world) {}

  // The job has begun; its last task has ended.
  void began(JobIndex job);
  void tasks_ended(JobIndex job);
  // Its next burst begins behind that.
  void pauses(JobIndex job);

  // The job has computed; whoever is done next on a host with a limit has, unless that has changed since (`version`).
  void done(JobIndex job);
  void stepped(uint64_t version);

 private:
  void compute(JobIndex job, Job::Phase phase, Duration length);
  void watch();
  void end(JobIndex job);

  World& world_;
};

}  // namespace heddle::simulator
