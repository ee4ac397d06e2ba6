#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "worker/deferred.h"
#include "worker/execution.h"
#include "worker/gate.h"
#include "worker/held_streams.h"
#include "worker/idle.h"
#include "worker/inbox.h"
#include "worker/lease.h"
#include "worker/look_ahead.h"
#include "worker/segments.h"
#include "worker/short_work.h"

namespace heddle::worker {

// One that was handed to the device and has not returned, as far as the worker has seen.
struct HostCall {
  uint32_t stream;
  uint64_t sequence;
};

// Its stream stands there, and the program's call is over; or nobody waits for it any more.
bool has_returned(const SessionParts& parts, const HostCall& call);
// Whether the stream waits for the default stream's work.
bool is_blocking(const SessionParts& parts, uint32_t stream);

// The thread that takes records from the ring and hands them to the device: the main path of a worker.
//
// A record is copied out of the ring and executed (execution.h), or what it asks for is done behind the work that was
// taken before it (issuer_tasks.cc); one that must wait (for memory, for a module) holds up everything behind it. What
// needs no device is finished here, so that an idle stream's marker costs the client two futex wake-ups and no third
// thread. Everything that touches the device happens on this thread; heddled's messages reach it through the inbox, and
// whoever has something for it rings to_worker.
//
// The completion of a batch of launches costs one lock.
class Issuer {
 public:
  struct Binding {
    const DeviceModel& model;
    protocol::Window window;
    uint64_t task_serial;
    // Where another worker was in the same task before, and this one goes on; or in the task before, from whose
    // variables this one goes on.
    std::optional<protocol::LogState> goes_on;
  };

  Issuer(const SessionParts& parts, Modules& modules, const Binding& binding, protocol::RingReader reader,
         WorkerLease lease);

  // Returns after stop(). Between a task's end and the next one, which heddled names, it leaves the ring alone.
  void run();
  // Any thread.
  void post(protocol::Packet packet);
  void stop();

 private:
  using Step = Execution::Step;

  // Between records.
  void attend();
  void receive(const protocol::Packet& packet);
  void map(const protocol::Packet& packet);
  void begin_task(uint64_t serial);
  void finish_task(uint64_t sequence);
  void reclaim_if_asked();
  bool reclaim_idle();
  bool is_quiet() const;
  void run_deferred();
  void carry_out(const Deferred& deferred);
  void finish_host_calls();
  void go_on();
  void save_variables();

  // Another worker is to go on later (issuer_suspend.cc).
  void leave_if_done();

  // Leases.
  void count_leases();
  void follow_host_calls();
  bool may_issue(const WorkKind& work);
  bool has_room(const WorkKind& work, InFlight::Room room);
  bool may_release(const HostCall& call);
  Checked<Step> execute_leased();
  bool goes_uncounted(const WorkKind& work);
  Checked<Step> execute_counted(const WorkKind& work);
  void say_backlog();
  bool waits_for_device() const;
  void attend_lease();
  void attend_lease_meanwhile();
  void look_whether_drained(TimePoint now);
  bool uncounted_is_done() const;
  Duration patience() const;

  // One record.
  bool next();
  bool take();
  Checked<Step> issue();
  Checked<Step> host_call();
  Step defer(Deferred::Kind kind);
  Step end_task();
  void flush();
  bool wants_fence() const;
  void rest(protocol::Bell& bell, uint32_t seen);
  bool watch(protocol::Bell& bell, uint32_t seen, Duration timeout);

  SessionParts parts_;
  Modules& modules_;
  uint64_t task_serial_;
  Gate gate_;
  protocol::RingReader reader_;
  Execution execution_;
  Segments segments_;
  Inbox inbox_;
  Idle idle_;
  std::atomic<bool> stopping_{false};

  protocol::Record record_;
  bool have_record_ = false;                   // record_ waits to be taken
  bool suspending_ = false;                    // no record is taken any more
  bool reset_ = false;                         // the program has reset the device
  std::optional<Duration> save_in_;            // until variables are to be saved; the bell may ring first
  std::optional<protocol::LogState> goes_on_;  // until that is done
  uint64_t entered_ = 0;                       // sequence of the record taken last
  uint64_t fenced_ = 0;                        // up to there the device says by itself when it is done
  uint64_t reclaims_ = 0;                      // of heddled's requests, those that were met
  Duration nap_{};                             // how long the ring was silent so far, and is slept on next
  WorkerLease lease_;
  bool counts_ = false;     // leases do: what is handed over is in in_flight
  uint64_t uncounted_ = 0;  // up to here it may not be
  uint64_t last_work_ = 0;  // sequence of what needed the device last, as far as leases count
  bool backlog_ = false;    // was said, and not taken back
  std::optional<TimePoint> idle_since_;
  uint32_t unattended_ = 0;   // records taken since the last look at the lease
  HeldStreams held_;          // as far as leases count
  bool awaits_call_ = false;  // record_ stands behind a host call, with as much as may
  PromotionWait promotion_;
  LookAhead look_ahead_;
  ShortWork short_work_;
  DeferredQueue deferred_;
  std::vector<HostCall> host_calls_;
};

}  // namespace heddle::worker
