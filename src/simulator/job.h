#pragma once

#include "simulator/outcome.h"
#include "simulator/scenario.h"
#include "simulator/shared_device.h"

namespace heddle::simulator {

// A job of the simulated node and where it stands.
struct Job {
  enum class Phase {
    kAway,     // has not arrived, waits in line, or has ended
    kWaiting,  // its task for a device
    kHost,     // computes on the host
    kCopy,     // the burst's copy: on the device, or waits for its lease
    kKernels,  // the burst's kernels, likewise
  };
  const JobShape* shape = nullptr;
  JobOutcome outcome;
  Phase phase = Phase::kAway;
  SessionId session;  // of the present run
  TaskId task;
  DeviceId device;
  uint32_t tasks_left = 0, bursts_left = 0;  // with the present one
  TimePoint arrived{};                       // for the present run
  TimePoint waits_since{}, granted{};        // of the present task
  uint64_t warps = 0;                        // that its kernels keep resident on its device
  Duration left{};                           // of the phase, where it is not on the device
  Duration busy_before{}, copied_before{};   // the present task
  Duration copied{};                         // on the device, over all tasks
  Duration told_busy{}, told_copied{};       // to the dispatch policy
  uint64_t bursts = 0;                       // of the present task
  uint64_t told_bursts = 0;
  Duration burst{}, longest_burst{};  // on the device: the present one, and the task's largest

  // Its copy and kernels are next.
  void begin_piece() {
    const bool copies = shape->copy > Duration::zero();
    phase = copies ? Phase::kCopy : Phase::kKernels;
    left = copies ? shape->copy : shape->busy;
  }
  bool in_burst() const { return phase == Phase::kCopy || phase == Phase::kKernels; }
};

}  // namespace heddle::simulator
