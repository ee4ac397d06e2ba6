#pragma once

#include <vector>

#include "simulator/world.h"

namespace heddle::simulator {

// The part of a world that has jobs give way: one that computes on the host while others wait for its device leaves it,
// with its memory in swap space, and comes back when its next burst begins; one that is part of a deadlock
// (growing_jobs.h) leaves, and waits to come back. policy/swapping.h says who, as it does for heddled
// (daemon/task_swaps.h, daemon/idle_holders.h). Without state of its own.
//
// Memory is copied by the device's copy engine, each way; behind that, or when a burst ends the way out, another worker
// takes over.
class SwappedJobs {
 public:
  explicit SwappedJobs(World& world) : world_(world) {}

  // Copies stand beside their jobs' own work on a device, under numbers of their own.
  static bool is_copy(JobIndex work) { return (work & kCopy) != 0; }
  static JobIndex copied_job(JobIndex work) { return work & ~kCopy; }

  // Behind the scheduler's decisions. Whether anybody is leaving: nobody is to begin eagerly in that place.
  bool make_room();
  // The job's memory leaves its device, which does nothing for it: for that it must have space.
  void leave(JobIndex job);
  bool has_space_for(const Job& job) const;
  // The next burst of a job that is leaving, or has left, has begun.
  void burst_began(JobIndex job);
  // The scheduler has a device for one that has left.
  void device_found(JobIndex job, DeviceId device);
  // It never will have one.
  void refused(JobIndex job);
  // All of its memory is in swap space, or on its device again; another worker has taken over.
  void copied(JobIndex job);
  void resumed(JobIndex job);

 private:
  static constexpr JobIndex kCopy = JobIndex{1} << 30;

  bool is_due();
  std::vector<TaskId> look();
  void left(JobIndex job);
  void want_back(JobIndex job);
  void begin_copy(JobIndex job, Bytes bytes);
  void end_copy(JobIndex job);

  World& world_;
};

}  // namespace heddle::simulator
