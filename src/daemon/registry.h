#pragma once

// What heddled knows: jobs, sessions and what they own, workers, devices. Plain objects with owners; who may change
// them when is the business of tasks.h, sessions.h and workers.h.

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ids.h"
#include "daemon/config.h"
#include "daemon/connection.h"
#include "daemon/event_loop.h"
#include "daemon/events.h"
#include "daemon/repeated_deaths.h"
#include "daemon/task_state.h"
#include "daemon/worker.h"
#include "policy/lessee.h"
#include "policy/sla.h"
#include "policy/task.h"
#include "protocol/control_page.h"
#include "protocol/ring_memory.h"

namespace heddle::daemon {

using NodeId = Id<struct NodeTag>;  // a machine that devices of the pool are in; 0: heddled's own

struct Segment {
  enum class State {
    kNamed,  // declared; belongs to the task that begins next, or waits until it may be asked for
    kAsked,  // an extension that the scheduler decides
    kHeld,   // in the ledger; has memory once a worker needs it
  };
  SegmentId id;
  uint64_t number = 0, address = 0;
  Bytes bytes;
  protocol::SegmentKind kind = protocol::SegmentKind::kDevice;
  uint32_t virtual_device = 0;
  State state = State::kNamed;
  uint64_t answers = 0;  // the client's request that waits for a SegmentAnswer; 0: none
  Fd memory;
  uint64_t request = 0;  // under way to its GPU's keeper; 0: none
  // Between devices, from or to its memory, under way with a keeper that holds the descriptor too: until they are over
  // the memory is nobody else's, even where the segment is gone (Copies).
  uint32_t copies = 0;
  // Of the GPU whose keeper gets the memory back, to serve it again. None where the memory is this machine's, and where
  // it will never be certain that nobody can touch it.
  std::optional<DeviceId> returns_to;
  bool number_again = false;  // asked for again after a restart of heddled (segment_rules.h)
  // In swap space, of this machine's memory (swaps.h). It counts there from kLeaving on.
  struct Swap {
    enum Place {
      kNone,
      kLeaving,    // being copied there; what lies on the device is what counts
      kSwapped,    // there, and nowhere else
      kReturning,  // being copied back; what lies there is what counts
      kOnHost,     // there, and its task runs with it (eager_tasks.h)
      kPromoting,  // as kOnHost, and the device has place for it: to be copied there as soon as nobody runs the task
    };
    Place place = kNone;
    Fd memory;
    // The number under which its GPU's keeper has it mapped; 0: none, or a worker may have it mapped too (SwapSpace).
    uint64_t mapping = 0;
    DeviceId mapped_by;
    uint64_t request = 0;  // for that memory, under way to a GPU's keeper; 0: none
    uint64_t copy = 0;     // under way; 0: none
    bool on_host() const { return place == kOnHost || place == kPromoting; }
    bool counts() const { return place == kSwapped || place == kReturning || on_host(); }
  };
  Swap swap;
  // What its task runs with.
  const Fd& working_memory() const { return swap.on_host() ? swap.memory : memory; }
  bool given = false;        // to a worker that may still touch it
  bool asked_again = false;  // its GPU had no memory, before workers ended to make space
};

struct Module {
  uint64_t key = 0;  // of its deposit
  protocol::Module message;
  Fd memory;
};

// Whether heddled has a task give up its device, of its own accord. Nothing of it is told to the program.
enum class GivesWay : uint32_t {
  kNo,
  kIdle,       // its program does nothing with the device, and others wait: until there is work for it
  kDeadlock,   // programs wait for each other's memory: until others had the chance to go on with it
  kPromotion,  // it has memory on the host for which there is place on its device: until that is copied
};

// The ring had no work from `since` on, up to the latest look.
struct Quiet {
  uint64_t sequence = 0;  // of its last record
  TimePoint since{};
};

// One task of a virtual device, from BeginTask (or, where memory is granted at cudaMalloc, from the first buffer) on.
struct Task {
  TaskId id;
  uint64_t serial = 0;  // 0: memory was asked for, the task has not begun
  TaskState state = TaskState::kNew;
  policy::ComputeNeed need;
  protocol::ComputeNeed declared;
  DeviceId device;
  TimePoint arrived{}, granted{};
  bool keeps_device = false;   // its memory could not be copied to swap space: not tried again until it is resumed
  bool keeps_on_host = false;  // what lies on the host could not be promoted: not tried again
  GivesWay gives_way = GivesWay::kNo;
  uint32_t promotions = 0;         // how often memory of it was promoted, since a restart of heddled
  uint32_t swaps = 0;              // how often its memory has left a device
  std::optional<Quiet> quiet;      // as far as anybody has looked (idle_holders.h)
  TimePoint came_back{};           // when it last had its device again, or was left there; zero: it never left
  TimePoint swap_began{};          // its memory is being copied since then
  Duration swap_took{};            // of the last copies: there, and back if it is
  std::string reason;              // of the grant
  protocol::Usage used;            // of the devices that it had before it was swapped out
  std::deque<uint64_t> asked;      // segments that the scheduler decides, in order
  std::deque<uint64_t> held_back;  // segments over the budget until frees arrive, in order
};

struct Worker;

// A task that went on in another worker.
struct Resumption {
  uint64_t count = 0;    // how often so far, since the ring was made
  DeathsInPlace deaths;  // of its workers
};

// What became of orders to terminate the worker of a virtual device (terminations.h).
struct TerminationCounts {
  uint64_t done = 0, refused = 0;  // since the ring was made
  std::string why;                 // the last refusal
  TaskId told;                     // whose refusal was logged
};

struct VirtualDevice {
  uint32_t index = 0;
  uint64_t ring_key = 0;
  Fd ring_memory;
  std::optional<protocol::RingMemory> ring;  // nothing until OpenDevice
  Fd control_memory;
  std::optional<protocol::ControlPage> control;  // made with the ring
  protocol::Usage accounted;                     // what stood there when the last task ended
  uint64_t generation = 0;
  uint64_t last_serial = 0;          // of the task that ended last
  std::optional<DeviceId> assigned;  // under a policy that assigns jobs
  Bytes live;                        // of the segments that are asked for or held
  uint64_t requests = 0;             // of its segments, under way to a keeper
  Bytes swapped;                     // of its segments, in swap space
  uint64_t swap_attempt = 0;         // to copy them there or back; the last one
  TimePoint copies_began{};          // of that attempt; zero: none has
  Resumption resumed;                // the last one
  TerminationCounts terminations;
  bool apart = false;  // served outside of MPS: not all of its work can be run again, or MPS is full (mps_clients.h)
  std::unique_ptr<Task> task;
  std::deque<protocol::BeginTask> next;  // tasks that were begun while their forerunner is still ending
  Worker* worker = nullptr;              // the executor's (worker_executor.h): others ask Executor::serving
};

struct Session {
  SessionId id;
  JobId job;
  uint64_t secret = 0;
  uid_t uid = 0;
  pid_t pid = 0;
  std::string program, model;
  Bytes budget;
  std::optional<protocol::Window> window;
  Fd process;
  EventLoop::Watch process_watch;
  Connection* connection = nullptr;  // borrowed from its client; none while the program is not connected
  bool resumed = false;              // what it says may be a repetition
  bool failed = false, ending = false;
  TimePoint opened{};                 // zero after a restart
  std::optional<Duration> host_time;  // user and system time of its process when it was looked at (host_times.h)
  std::string failure;
  uint64_t highest_segment = 0, highest_request = 0;
  std::map<uint64_t, Segment> segments;     // by number
  std::map<uint64_t, uint64_t> by_address;  // address -> number
  std::vector<Module> modules;              // by id - 1
  Bytes module_bytes, host_bytes;
  std::vector<VirtualDevice> devices;  // those that the program sees, then side devices (protocol::Welcome)
  uint32_t seen_devices = 0;
  std::optional<protocol::DeclareSegment> deferred;  // waits for the segment that it overlaps to be given back
  uint64_t told_busy_ns = 0;                         // to those who asked (usage.h)
};

// Of the virtual device's memory, what lies on the host while its task has a device.
inline Bytes bytes_on_host(const Session& session, const VirtualDevice& device) {
  Bytes sum;
  for (const auto& [number, segment] : session.segments) {
    if (segment.swap.on_host() && segment.virtual_device == device.index) sum += segment.bytes;
  }
  return sum;
}

// Whether its worker has work on the device, as the control page says.
inline bool computes(const VirtualDevice& device) {
  return device.control && device.control->log().at_work();
}

// What the checks of kernels found in the session so far.
inline uint64_t findings_of(const Session& session) {
  uint64_t findings = 0;
  for (const VirtualDevice& device : session.devices)
    if (device.ring) findings += device.ring->header().findings.load(std::memory_order_acquire);
  return findings;
}

// Of the virtual device's memory, what its program has freed and keeps while nobody waits, as far as heddled has it.
inline Bytes idle_bytes(const Session& session, const VirtualDevice& device) {
  Bytes idle;
  if (!device.ring) return idle;
  for (const auto& slot : device.ring->header().idle.segments) {
    const uint64_t number = slot.load(std::memory_order_seq_cst);
    const auto found = number == 0 ? session.segments.end() : session.segments.find(number);
    if (found == session.segments.end() || found->second.state != Segment::State::kHeld) continue;
    if (found->second.kind == protocol::SegmentKind::kDevice && found->second.virtual_device == device.index)
      idle += found->second.bytes;
  }
  return std::min(idle, device.live);  // the tenant may have written a number twice
}

struct Job {
  JobId id;
  uint64_t secret = 0;
  uid_t uid = 0;
  std::string name;
  Bytes budget;           // 0: no limit of its own
  policy::Tenant tenant;  // as it was asked for: see tenant_of (tenant.h)
  bool cancelled = false;
  bool suspended = false;     // its tasks are, or will be as soon as what they have under way is done
  std::string not_suspended;  // why the last attempt came to nothing
  bool swap = false;          // while it is suspended its memory is to leave the devices, whether others wait or not
  std::string not_swapped;    // why it did not, at the last attempt
  // Of sessions that are over; since a restart of heddled.
  uint64_t findings = 0;
  protocol::Usage usage;
  uint64_t told_busy_ns = 0;  // to those who asked (usage.h)
  policy::Sla sla;            // of a user-facing job, since a restart of heddled
  std::set<SessionId> sessions;
  Connection* opener = nullptr;  // borrowed
};

// What heddled knows of a device beyond the ledger.
struct DeviceState {
  // Where its programs share their faults (shared_faults.h).
  enum class Health { kHealthy, kFaulted, kTrial };
  DeviceId id;
  NodeId node;
  DeviceConfig config;
  Fd board;
  std::optional<protocol::Window> window;  // of a GPU: what its workers could reserve
  // How workers start here. Workers outside of MPS count apart: whether they can start tells nothing about MPS' own
  // clients.
  struct Starts {
    uint32_t failed = 0;  // in a row
    std::string last_failure;
    TimePoint next{};
  };
  Starts starts, starts_outside;
  Starts& starts_of(Worker::Kind kind) { return kind == Worker::Kind::kOutsideMps ? starts_outside : starts; }
  TimePoint last_bound{};     // when a worker was last taken out of the pool
  protocol::Usage usage;      // of tasks that ended here, since heddled was started
  uint64_t told_busy_ns = 0;  // to those who asked (usage.h)
  uint64_t copies = 0;        // that its keeper has brought here, from whichever GPU
  Bytes copied;
  EventLoop::Timer start_timer;
  TimePoint start_at{};                         // when start_timer is due
  std::deque<TimePoint> arrivals;               // latest takes of a worker from the pool, while the pool follows them
  EventLoop::Timer pool_timer;                  // the pool is larger than configured: the next look at it
  TimePoint no_pool_before{};                   // the GPU was short of memory
  std::vector<MemoryRequest> contexts_awaited;  // what is asked for again when workers have ended for it
  std::deque<std::pair<SessionId, uint32_t>> wanting;  // virtual devices with a grant and without a worker
  Health health = Health::kHealthy;
  size_t expected_outside = 0;  // workers wanted outside of MPS, before it is known for whom
  TimePoint last_left{};        // when a worker that had served somebody was gone last
  TimePoint last_shared_fault{};
  // Virtual devices: served apart from all others; whose trial is over since the last fault.
  std::set<std::pair<SessionId, uint32_t>> on_trial, tried;
};

struct Registry {
  std::map<JobId, Job> jobs;
  std::map<SessionId, Session> sessions;
  std::map<WorkerId, Worker> workers;
  std::vector<DeviceState> devices;
  std::map<TaskId, std::pair<SessionId, uint32_t>> tasks;  // whose: the session's virtual device
  Bytes host_bytes;                                        // pinned, of all sessions
  Bytes swapped;                                           // of all sessions, in swap space
  Bytes swap_kept;                                         // pinned besides, for what leaves a GPU next (swap_space.h)

  Session* find_session(SessionId id) {
    const auto found = sessions.find(id);
    return found == sessions.end() ? nullptr : &found->second;
  }
  Job* find_job(JobId id) {
    const auto found = jobs.find(id);
    return found == jobs.end() ? nullptr : &found->second;
  }
  Worker* find_worker(WorkerId id) {
    const auto found = workers.find(id);
    return found == workers.end() ? nullptr : &found->second;
  }
  // A session's virtual device; none where the session is over.
  std::pair<Session*, VirtualDevice*> find_device(std::pair<SessionId, uint32_t> who) {
    Session* session = find_session(who.first);
    if (!session || who.second >= session->devices.size()) return {};
    return {session, &session->devices[who.second]};
  }
  // The virtual device that has the task; none where it has ended.
  std::pair<Session*, VirtualDevice*> owner_of(TaskId id) {
    const auto found = tasks.find(id);
    Session* session = found == tasks.end() ? nullptr : find_session(found->second.first);
    if (!session) return {};
    VirtualDevice& device = session->devices[found->second.second];
    if (!device.task || device.task->id != id) return {};
    return {session, &device};
  }
  // The GPU that the segment's task was granted. None where the memory is this machine's: of software devices, and
  // pinned.
  const DeviceState* gpu_of(const Session& session, const Segment& segment) const {
    if (segment.kind == protocol::SegmentKind::kHost || segment.virtual_device >= session.devices.size())
      return nullptr;
    const VirtualDevice& device = session.devices[segment.virtual_device];
    if (!device.task) return nullptr;
    const DeviceState& on = devices[device.task->device.value];
    return on.config.model.kind == DeviceKind::kCuda ? &on : nullptr;
  }
  size_t workers_on(DeviceId device) const {
    return static_cast<size_t>(
        std::count_if(workers.begin(), workers.end(), [&](const auto& each) { return each.second.device == device; }));
  }
  size_t workers_on(DeviceId device, Worker::State state) const {
    return static_cast<size_t>(std::count_if(workers.begin(), workers.end(), [&](const auto& each) {
      return each.second.device == device && each.second.state == state;
    }));
  }
  // Of the other virtual devices of all the job's sessions, but for what is idle.
  Bytes live_bytes_beside(const Job& job, const VirtualDevice& asking) {
    Bytes live;
    for (const SessionId id : job.sessions) {
      const Session* session = find_session(id);
      if (!session) continue;
      for (const VirtualDevice& device : session->devices) {
        if (&device != &asking) live += device.live - idle_bytes(*session, device);
      }
    }
    return live;
  }
  // The virtual device that the worker serves; none where it serves none.
  std::pair<Session*, VirtualDevice*> served_by(const Worker& worker) {
    if (worker.state != Worker::State::kBound) return {};
    const auto served = find_device({worker.session, worker.virtual_device});
    if (!served.second || served.second->worker != &worker) return {};
    return served;
  }
};

}  // namespace heddle::daemon
