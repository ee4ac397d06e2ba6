#pragma once

#include "policy/service.h"
#include "simulator/outcome.h"
#include "simulator/scenario.h"
#include "simulator/shared_device.h"

namespace heddle::simulator {

// A job of the simulated node and where it stands.
struct Job {
  enum class Phase {
    kAway,     // has not arrived, waits in line, or has ended
    kBefore,   // computes on the host, before its first task
    kWaiting,  // its task for a device
    kHost,     // computes on the host, before a burst
    kCopy,     // the burst's copy: on the device, or waits for its lease
    kKernels,  // the burst's kernels, likewise
    kBehind,   // computes on the host, behind its last task
  };
  // Where the memory of one of its buffers lies.
  enum class MemoryPlace { kDevice, kHost, kPromoting, kFreed };
  // The promotion of memory to its device (eager_jobs.h).
  enum class Promotion {
    kNone,
    kDraining,  // its worker ends the kernel or the copy under way
    kCopying,
    kResuming,  // another worker takes over
  };
  // Its memory, on its way to swap space and back (swapped_jobs.h).
  enum class Swap {
    kNone,
    kOut,       // is being copied there; the job has its device
    kSwapped,   // is there, and the job does nothing with a device
    kWaiting,   // is there, and its burst waits for a device
    kIn,        // is being copied back
    kResuming,  // is on its device, and another worker takes over
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
  Duration computed{};                       // on the host, in this run
  Duration told_busy{}, told_copied{};       // to the dispatch policy
  uint64_t bursts = 0;                       // of the present task
  uint64_t told_bursts = 0;
  Duration burst{}, longest_burst{};  // on the device: the present one, and the task's largest
  uint64_t draws = 0;                 // of bursts' lengths
  Duration busy{};                    // that the present burst's kernels take
  Duration committed{};               // of them, not to be run again
  bool resumes = false;               // its worker was terminated in the burst
  std::vector<MemoryPlace> memory;    // of the present task, by buffer of its shape
  Promotion promotion = Promotion::kNone;
  uint64_t host_wait = 0;  // the latest burst whose kernels have waited for one, or do
  Swap swap = Swap::kNone;
  std::optional<TimePoint> quiet;      // when it was first seen to compute on the host, of the present time there
  std::optional<TimePoint> came_back;  // when it last had its device again
  Duration swap_took{};                // of the last copies: there, and back if it is
  TimePoint copies_since{};            // where its memory is being copied
  Bytes moving;                        // of that, to swap space or back
  bool asks = false;                   // for more memory, and does nothing until it has it
  std::optional<TimePoint> asked;      // since when, as far as it does not wait for its device as well
  bool to_leave = false;               // its memory, for swap space, so that a deadlock ends
  Bytes grown;                         // what the present task has got besides
  double stretch = 1;                  // of the present piece, by memory on the host and a part of the SMs
  std::optional<TimePoint> request;    // when the present burst arrived; none: it has ended
  std::optional<TimePoint> issued;     // when its first work went to the device

  // Its copy and kernels are next, which take `length`.
  void begin_piece(Duration length) {
    const bool copies = shape->copy > Duration::zero();
    phase = copies ? Phase::kCopy : Phase::kKernels;
    busy = length;
    left = copies ? shape->copy : busy;
    committed = {};
  }
  Duration kernel() const { return shape->kernel > Duration::zero() ? shape->kernel : busy; }
  policy::Tenant tenant() const;
  // What is counted of its class.
  policy::Sla& sla(Outcome& outcome) const;
  // A burst begins: a request, where the job is user-facing. A task's first one arrived with the task, where the host
  // has nothing to do before it.
  void begin_request(TimePoint now);
  void end_request(Outcome& outcome, TimePoint now);
  // Of the burst's kernels, with `done` of them behind it: epochs are at least so long, and end with a kernel.
  Duration committed_with(Duration done, Duration epoch) const;
  // What it has used of its device since it has it; from now on counted anew.
  policy::Service take_service();
  // No worker serves it, or it waits for memory: its bursts wait.
  bool is_away() const { return asks || promotion != Promotion::kNone || swap != Swap::kNone; }
  void end_asking(TimePoint now) {
    if (asked) outcome.waited += now - *asked;
    asked.reset();
    asks = false;
  }
  // Of the present burst in its task, from 1.
  uint32_t burst_number() const { return shape->bursts - bursts_left + 1; }
  // One that waits for a device, or has it.
  bool has_task() const { return phase != Phase::kAway && phase != Phase::kBefore && phase != Phase::kBehind; }
  bool in_burst() const { return phase == Phase::kCopy || phase == Phase::kKernels; }
};

// How long the kernels of its next burst take: the same for the same seed, whatever else happens.
Duration draw_busy(Job& job, uint32_t index, uint32_t seed);

}  // namespace heddle::simulator
