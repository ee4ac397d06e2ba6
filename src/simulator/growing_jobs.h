#pragma once

#include "simulator/world.h"

namespace heddle::simulator {

// The part of a world that is about jobs which ask for more memory than they began with, and stand until they have it.
// Where several hold memory and wait for more, so that none could ever go on, the scheduler says whose memory leaves
// its device (policy/deadlock.h, policy/swapping.h); a request that can never be met ends its job, as
// cudaErrorMemoryAllocation ends a program. Without state of its own.
class GrowingJobs {
 public:
  explicit GrowingJobs(World& world) : world_(world) {}

  // Before its task's burst of that number.
  static bool asks_before(const Job& job, uint32_t burst);

  // Its burst has begun: it asks, if that is the one.
  void burst_began(JobIndex job);
  // The scheduler's answers: it has the memory; it never will; its memory is to leave its device.
  void extended(JobIndex job);
  void refused(JobIndex job, const std::string& reason);
  void told_to_leave(JobIndex job);
  // Its burst may want its device: not while it has no worker or waits for memory. Answers that came while it had none
  // count from now on.
  bool holds_up(JobIndex job);

 private:
  void leave(JobIndex job);

  World& world_;
};

}  // namespace heddle::simulator
