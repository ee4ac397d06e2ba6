#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/executor.h"
#include "daemon/workers.h"

namespace heddle::daemon {

// What becomes of the programs of a device whose clients share their faults, as under MPS: whoever has brought one
// about, it ends the work of all, and nobody is told whose it was.
//
//   healthy --fault--> faulted --all workers are gone--> trial --nobody is left to try--> healthy
//
// - Faulted: the device's workers are ended, and nobody else is served there (Workers::recover).
// - When they are gone, each program is judged by its ring's control page. One that had nothing under way goes on in
//   another worker. One whose work cannot be run again gets the error, as nobody could tell how much of it was done.
//   The others are suspects, where a kernel has failed; where a worker or a control daemon has died, nobody is.
// - Trial: suspects run their work again, each where its fault is nobody else's. On a GPU under MPS that is outside of
//   it, where processes share nothing: all at once, when all of their workers stand ready or after kTogether, and while
//   MPS is started anew; once that takes clients, all others are served as ever. Elsewhere one after the other, the one
//   whose task is oldest first, alone on the device. One that faults then gets its error. One that has done what was
//   under way at the fault, or has run for kLongestTrial, leaves its worker for another one: at once, or under MPS,
//   where it goes on meanwhile, when one stands ready.
// - A fault under MPS meanwhile is no business of those that are tried outside.
//
// A program may fail only in company: one that was a suspect kMostSuspicions times within kMemory gets the error, where
// nobody else was found.
//
// That a device is faulted is with the vault before any worker is ended. A heddled that was restarted ends the workers
// that are left and judges by the pages again: who was tried has nothing under way.
class SharedFaults {
 public:
  SharedFaults(Shared& shared, Workers& workers) : shared_(shared), workers_(workers) {}
  void connect(ExecutorEvents& events) { events_ = &events; }

  // A worker's device has failed it; the worker shows nothing of that yet.
  void reported(Worker& worker, const protocol::WorkerFault& fault);
  // A worker has died, or is dying, and nobody has ended it: a fault of all where it had work under way.
  void worker_died(Worker& worker, const VirtualDevice& device);
  // After a restart.
  void restore(DeviceId device, const SharedFault& fault);

  // Events.
  void faulted(DeviceId device, const SharedFault& fault);
  void left(DeviceId device);
  void cleared(DeviceId device);
  void trial_due(DeviceId device);

  // The next record of a guarded worker's task could be lost with another program's fault.
  void needs_apart(const Worker& worker, const protocol::NeedsApart& said);
  // Programs leave their workers for those of another kind that stand ready: who was tried outside of MPS and is to go
  // on under it; who does not stay under MPS.
  void call_away(DeviceId device);

  // Whether the virtual device's task may have a worker of its device now.
  bool may_be_served(const Session& session, const VirtualDevice& device) const;

 private:
  using Lessee = std::pair<SessionId, uint32_t>;
  struct Report {
    uint32_t cuda_error = 0;
    std::string text;
  };
  struct Suspect {
    Lessee who;
    uint64_t serial = 0;  // of its task
    uint64_t until = 0;   // of its ring's records, the last one that was under way
    TimePoint arrived{};
  };
  struct Trial {
    Suspect suspect;
    TimePoint served{};   // since when its worker is there
    TimePoint leaving{};  // since when that worker is to give it up
  };
  enum class Course { kGoesOn, kOver, kGuilty };
  struct Case {
    SharedFault fault;
    std::map<Lessee, Report> reports;
    std::set<Lessee> stayed;   // whose workers stayed for their next tasks, and were ended
    std::deque<Suspect> left;  // to be tried
    std::map<Lessee, Trial> trials;
    bool found = false;  // somebody whose fault it may have been has the error
    TimePoint judged{};
    EventLoop::Timer timer, together;
  };

  DeviceState& device_of(DeviceId id) { return shared_.registry.devices[id.value]; }
  bool is_alone(const Worker& worker, const Lessee& who);
  void convict(Worker& worker, Session& session, const Report& report);
  void judge(DeviceId id, Session& session, VirtualDevice& device);
  void judge_stayed(Case& of, const Lessee& who);
  void fail(Session& session, const VirtualDevice& device, Case& of, const std::string& why);
  bool suspected_too_often(DeviceId id, const Lessee& who);
  void judge_all(DeviceId id);
  void try_next(DeviceId id);
  void healthy(DeviceId id);
  bool trials_may_begin(const DeviceState& on) const;
  Course look(DeviceId id, Trial& trial);
  Course look_at_work(DeviceId id, Trial& trial, Session& session, VirtualDevice& device);
  void end_trial(DeviceId id, const Lessee& who, bool guilty);
  void look_later(DeviceId id);
  bool let_go(Worker& worker, const Task& task);

  Shared& shared_;
  Workers& workers_;
  ExecutorEvents* events_ = nullptr;
  std::map<DeviceId, Case> cases_;
  std::map<std::pair<DeviceId, Lessee>, std::deque<TimePoint>> suspicions_;
};

}  // namespace heddle::daemon
