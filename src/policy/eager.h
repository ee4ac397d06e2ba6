#pragma once

#include <vector>

#include "policy/scheduler.h"

namespace heddle::policy {

// Where a waiting task could begin with a part of its memory.
struct EagerPlace {
  TaskId task;
  DeviceId device;
  Bytes least, most;  // of the task's memory on the device
};

// The part of a scheduler that is about tasks that run with a part of their memory on the device and the rest on the
// host, where the device reaches it more slowly: Eager Launch (eager scheduling report, section 5.2). Not under a
// memory-oblivious policy. Without state of its own.
//
// A task that waits for memory, because it fits nowhere, may be launched on a device that could hold all of it, where
// no task has memory on the host yet, and where at least half of its memory is free. Half is not the report's, which
// names no limit: a GPU reads host memory some 60 times slower than its own. As memory returns on the device, the
// task's host memory may be promoted to it; a request that has reserved the device goes before if it is the older one.
// A younger one would only wait for longer behind a task that stays slow. No second task is launched on a reserved
// device, so each reservation is overtaken by one task at most.
//
// How memory is cut into segments, and whether the host has as much, is the caller's to know. So he asks who could,
// chooses (by the rules below, so that heddled and the simulator choose alike), and says what he did.
class Eager {
 public:
  explicit Eager(Scheduler& scheduler) : scheduler_(scheduler) {}

  // The oldest requests first; of one request, the device with the most free memory first. Ask behind decisions().
  static std::vector<EagerPlace> could_launch(const Scheduler& scheduler);
  // The waiting task begins on the device, with that much of its memory on the host: a grant follows. Nothing where
  // the rest is not free there.
  void launched(TaskId task, DeviceId device, Bytes on_host, TimePoint now);

  // How much of the running task's host memory its device has place for. None while it waits for more memory.
  static Bytes could_promote(const Scheduler& scheduler, TaskId task);
  // So much of it, no more than that, is the device's from now on.
  void promoted(TaskId task, Bytes bytes, TimePoint now);
  // It is not, after all.
  void returned_to_host(TaskId task, Bytes bytes, TimePoint now);
  // The running task has freed memory on the host.
  void host_memory_freed(TaskId task, Bytes less, TimePoint now);

 private:
  Scheduler::Task* running(TaskId task, TimePoint now);

  Scheduler& scheduler_;
};

// The rules by which whole segments of a task go to the device or to the host.

// The indices of those segments that fit into `space` together, the first ones first; one that does not fit is passed
// over.
std::vector<size_t> segments_that_fit(const std::vector<Bytes>& segments, Bytes space);
// Whether a task with `memory` may be launched there with `on_host` of it on the host, of whose swap space `swap_free`
// is left.
bool may_launch(const EagerPlace& place, Bytes memory, Bytes on_host, Bytes swap_free);
// Whether promoting `bytes` of what a task has on the host is worth an interruption of its work: at least half of it,
// so that a task is interrupted a few times at most.
bool is_worth_promoting(Bytes bytes, Bytes on_host);

}  // namespace heddle::policy
