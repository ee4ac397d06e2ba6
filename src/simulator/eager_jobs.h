#pragma once

#include <vector>

#include "simulator/world.h"

namespace heddle::simulator {

// The part of a world that launches tasks which fit nowhere with a part of their memory on a device and the rest on the
// host, and that has the rest promoted as memory returns. policy/eager.h says who, where, and which buffers, as it does
// for heddled (daemon/eager_tasks.h). Without state of its own.
//
// A buffer goes to the device or to the host as a whole. Kernels take as long as ever, and besides what they touch on
// the host over the bus's bandwidth; of that they have the share that their warps are of the device's, as on software
// devices. Before they do that they wait for a promotion, for as long as that would take them. (There a 2MM took 5.0 s
// longer for what this counts as 4.2 s: docs/results/2026-11-25-eager-software.md.)
//
// A promotion interrupts its job: the kernel under way ends, memory is copied by the device's copy engine, and another
// worker goes on. A job that computes on the host meanwhile notices it only where its next burst comes too early.
class EagerJobs {
 public:
  explicit EagerJobs(World& world) : world_(world) {}

  // Promotions stand beside their jobs' own work on a device, under numbers of their own.
  static bool is_promotion(JobIndex work) { return (work & kPromotion) != 0; }
  static JobIndex promoted_job(JobIndex work) { return work & ~kPromotion; }

  // Behind the scheduler's decisions, which this takes again.
  void launch();
  // Before they are taken, and behind them.
  void promote();

  // The job's task has a device, and so much of its memory lies on the host.
  void granted(JobIndex job, Bytes on_host);
  void task_ended(JobIndex job);
  // Its burst has ended: memory that no later one uses returns, where the scenario has eager frees.
  void free_unused(JobIndex job);
  // Whether the kernels of its present burst, which would reach memory on the host, wait for that to be promoted: for
  // as long as they would be at it, once a burst (worker/host_part.h). The job gives its lease back meanwhile.
  bool waits_for_promotion(JobIndex job);
  void waited(JobIndex job, uint64_t burst);
  // How many times as long the kernels of its present burst take, because of what they touch on the host.
  double stretch_of(const Job& job) const;

  static Bytes bytes_on_device(const Job& job);
  // Through a device's copy engine, without its slowdown; at least a nanosecond.
  static Duration copy_time(Bytes bytes, const DeviceModel& model);
  // The task has left its device: what it comes back with goes there.
  void all_on_device(JobIndex job);

  // Steps of a promotion: its job's work has left the device; the memory is there; another worker has taken over.
  void drained(JobIndex job);
  void copied(JobIndex job);
  void resumed(JobIndex job);

 private:
  static constexpr JobIndex kPromotion = JobIndex{1} << 31;

  bool launch_one();
  bool may_promote(JobIndex job);
  void begin_to_promote(JobIndex job);
  void copy(JobIndex job);
  void leave_device(World::Place& place, JobIndex job);
  void forget_where_none(const Job& job);

  World& world_;
};

}  // namespace heddle::simulator
