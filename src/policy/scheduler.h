#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/budgets.h"
#include "policy/deadlock.h"
#include "policy/decision.h"
#include "policy/placement/gate.h"
#include "policy/placement_state.h"
#include "policy/user_memory.h"
#include "policy/views.h"
#include "policy/waiting.h"

namespace heddle::policy {

struct Options {
  Duration age_limit = std::chrono::seconds(2);  // from this wait on, the oldest request reserves a device
  Bytes memory_per_user;  // what the tasks of one user may hold of all devices together; 0: no limit
  // Who may be placed where, besides; outlives the scheduler; null: everybody everywhere. Not under a memory-oblivious
  // policy, which places without looking. Nothing is reserved for a request that the gate keeps back.
  PlacementGate* gate = nullptr;
  // Tasks can leave their devices with their memory, and come back (swapping.h). Not under a memory-oblivious policy.
  bool swaps = false;
};

// Decides which task runs where and when. Events and a clock value in, decisions out; not thread-safe, nothing shared.
// The same events at the same times give the same decisions.
//
// The queue. Requests for devices of one model stand in one line, oldest first, extensions of running tasks before
// others of the same age. Whoever fits may go (backfill), the older first, until the oldest has waited `age_limit`. It
// then reserves one device: of those that it could run on, the one that lacks least of its memory, then the one with
// the fewest warps, then the lowest id, chosen anew at each pass. While it waits, sessions that hold nothing are not
// placed on the reserved device; they may still go to the others. Sessions that hold something are exempt, because the
// oldest may be waiting for just what they hold; so nobody ever waits for a session that a reservation keeps back. The
// oldest itself goes to whichever device has space first.
//
// Refused at once: what is more than any device of the model could hold (kOutOfMemory), what is over the job's budget
// or can never be within its user's memory (kLimitExceeded), and under a memory-oblivious policy what is not free
// (kOutOfMemory). Refused later: the youngest request of a deadlock (deadlock.h), unless its session's running tasks
// can leave their devices: then these do, and come back with what they had asked for (swapping.h). The oldest request
// of a deadlock so goes when all others have left; a session that stands in its own way is refused, since its tasks
// would only push each other out. Everything else waits until it is granted, cancelled or its session closes.
//
// A session that holds nothing waits for its user's other programs where they hold all that a user may, reserves
// nothing meanwhile and keeps nobody back. One that holds something is refused then (kLimitExceeded): so nobody who
// waits for his user's memory has what others of the same user wait for.
//
// Work: a pass attempts one request of each need (waiting.h) and each whose session holds something, and as many more
// as are granted, each at the price of the policy's place(); however many wait.
//
// Ids are the caller's: a TaskId or SessionId is used once. Events about tasks and sessions that are gone are ignored,
// so that a caller need not track what it has in flight.
class Scheduler {
 public:
  // `devices[i].id` is i; at least one device.
  Scheduler(std::unique_ptr<Placement> placement, std::vector<DeviceSpec> devices, Options options = {});

  // `budget` bounds the live memory of all sessions of the job, its first session's counts; 0: the largest device of
  // `model` less a context's cost. A job lasts as long as it has a session. `user`: whose, which only matters where
  // what a user may hold is limited. `app`: what jobs of its kind are known by to policies that learn.
  void session_opened(SessionId session, JobId job, std::string model, Bytes budget, TimePoint now, UserId user = {},
                      const std::string& app = {});
  // All that it held returns, what it waited for is forgotten, without decisions.
  void session_closed(SessionId session, TimePoint now);

  void task_arrived(const TaskRequest& request, TimePoint now);
  // The task's launches need more than was said: never waits; the device's load changes.
  void compute_grew(TaskId task, const ComputeNeed& need, TimePoint now);
  // Extensions of one task are decided one after the other. Those of a task that still waits begin to wait when it
  // runs; its refusal takes them with it.
  void extension_requested(TaskId task, Bytes more, TimePoint now);
  // A waiting task then asks for less. More than the task has counts as all of it.
  void memory_freed(TaskId task, Bytes less, TimePoint now);
  // Its memory, context and compute return; a waiting one is cancelled, without a decision.
  void task_ended(TaskId task, TimePoint now);

  // What the session has used of the device since that was said last. Say it before the session closes. Never leads to
  // a decision by itself.
  void served(SessionId session, DeviceId device, const Service& since_last);

  // What processes outside of heddled use of the device's memory: it is not promised while they have it. Whoever lacks
  // it waits, as they may give it back. Of an unknown device: ignored.
  void outside_memory(DeviceId device, Bytes used, TimePoint now);

  // Whether all of these tasks of one session would be granted if they arrived now: together, each on a device where
  // the session has nothing else, and while nobody waits. Never under a policy that assigns jobs. Changes nothing.
  bool could_start_apart(const std::vector<TaskRequest>& requests) const;

  // Whether the task, if it arrived now, would be granted, and more for a running one. Of what would be refused
  // whatever were given back: true, as nothing is to be gained.
  bool could_start(const TaskRequest& request) const;
  bool could_extend(TaskId task, Bytes more) const;
  // Whether anybody waits for a device of this one's model, and not for his own user's programs.
  bool waits_for(DeviceId device) const { return lines_[pool().model_of(device)].anybody_waits(users_); }

  // After a restart: what runs already is put back, without a decision. Errors leave the books as they were: unknown
  // session (kNotFound), no such device (kInvalidArgument), no space for it (kOutOfMemory).
  Status adopt(const TaskRequest& request, DeviceId device, TimePoint now);
  Status adopt_assignment(SessionId session, uint32_t virtual_device, DeviceId device, TimePoint now);

  // What has been decided since the last call, in order. Call it after each batch of events, and when next_deadline()
  // has come.
  std::vector<Decision> decisions(TimePoint now);
  // When the next request comes of age, if one will.
  std::optional<TimePoint> next_deadline() const;

  bool assigns_jobs() const { return state_.assigns_jobs(); }
  const Pool& pool() const { return state_.pool(); }
  std::vector<DeviceView> devices() const;   // by id
  std::vector<RunningView> running() const;  // by session, then task
  std::vector<WaitView> waiting() const;     // by model, then position
  std::optional<BudgetView> budget(SessionId session) const;

 private:
  friend class Swapping;  // its part for tasks that have no device for a while (swapping.h)
  friend class Eager;     // and for tasks that have a part of their memory on the host (eager.h)
  friend class Learning;  // and for what placement policies learn (learning.h)

  struct Extension {
    Bytes more;
    TimePoint since;
    uint64_t arrival;
  };
  struct Task {
    SessionId session;
    uint32_t virtual_device = 0;
    size_t model = 0;
    ComputeNeed compute;
    bool running = false;
    Bytes swapped;  // of one that is swapped out and wants no device
    std::optional<WaitKey> wait;
    std::vector<Extension> extensions;  // behind the one that waits, if any
    size_t resumes_with = 0;            // so many of these, the first, go with its resume, which waits
    bool leaving = false;               // it was told to leave its device, and has not yet
    std::optional<WaitKey> launched;    // its place in the line when it was launched eagerly
    // Of what its resume asks for, what it never had.
    Bytes asked_besides() const {
      Bytes sum;
      for (size_t i = 0; i < resumes_with; ++i) sum += extensions[i].more;
      return sum;
    }
  };
  struct Session {
    JobId job;
    std::string model;
    std::vector<TaskId> tasks;
    std::vector<WaitKey> waits;
  };

  // Arriving (scheduler.cc).
  Result<size_t> admit(const Session& session, const std::string& model, Bytes memory) const;
  void enqueue(const WaitKey& key, Wait wait);
  void drop_wait(const WaitKey& key);
  void needs_changed(SessionId session);
  void forget_task(TaskId task);
  void enqueue_next_extension(TaskId id, Task& task);
  // What a user may hold is of all models together.
  void returned_on(size_t model) {
    for (size_t each = 0; each < lines_.size(); ++each) lines_[each].retry |= each == model || users_.most().value != 0;
  }

  // Deciding (scheduler_pass.cc).
  void serve(size_t model, TimePoint now);
  bool attempt(const WaitKey& key, TimePoint now);
  bool attempt_extension(const WaitKey& key, Wait& wait, TimePoint now);
  bool attempt_place(const WaitKey& key, Wait& wait, TimePoint now);
  bool grant_where_placed(const WaitKey& key, const Request& request, Placed placed, TimePoint now);
  void reserve_for_oldest(Line& line, TimePoint now);
  Request request_of(const Wait& wait, size_t model) const;
  bool break_deadlock(TimePoint now);
  void finish(const WaitKey& key, Decision decision, TimePoint now);

  Options options_;
  PlacementState state_;
  Budgets budgets_;
  UserMemory users_;
  std::map<SessionId, Session> sessions_;
  std::map<JobId, std::set<SessionId>> jobs_;
  std::unordered_map<TaskId, Task> tasks_;
  std::vector<Line> lines_;  // by model
  std::vector<Decision> decided_;
  uint64_t gate_seen_ = 0;                 // version of what it said
  std::map<SessionId, std::string> stay_;  // in deadlocks, whose tasks could not leave, and why
  uint64_t arrivals_ = 0;
  bool deadlock_possible_ = false;  // set where one could have come about since the last search
  TimePoint seen_{};                // the latest clock value
};

}  // namespace heddle::policy
