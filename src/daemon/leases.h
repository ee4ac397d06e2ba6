#pragma once

#include <functional>
#include <map>

#include "daemon/request_clock.h"
#include "daemon/revocation.h"
#include "daemon/shared.h"
#include "policy/deadline/family.h"
#include "policy/dispatch/dispatch.h"

namespace heddle::daemon {

// Lends devices to rings: a dispatch policy for each device (policy/dispatch/) is told what happens to its lessees, and
// its orders become words on their control pages (protocol/control_page.h), which their workers go by.
//
//   idle --lend--> held --withdraw, or its time is over--> draining --LeaseReturned, or the task is over or stopped-->
//   idle
//
// A lease is out from lend to return. One that is not back within dispatch.return_limit fails its session; the limit
// begins anew after a standstill (EventLoop::awake_since). Under a policy that is not exclusive nothing of that is
// written (open_lease.h) and nobody is told anything.
//
// After a restart of heddled workers may have work on a device that the new policy knows nothing of, under a lease or
// because the last policy was not exclusive. Such a stray one counts as a lease that is withdrawn, and the device is
// lent to nobody before it is back.
//
// Under a deadline policy (policy/deadline/) the dispatch policies of all devices belong together, and say where tasks
// may be placed, too: what has happened is planned for before the scheduler decides, and all devices decide then. What
// became of user-facing jobs' requests is counted under every policy that lends devices.
class Leases {
 public:
  using MakeDispatch = std::function<std::unique_ptr<policy::Dispatch>()>;

  explicit Leases(Shared& shared) : shared_(shared) {}
  // Once the registry has its devices, and before any task has one. Without it no device is lent.
  // `deadlines`: whose the policies that `make` makes are; null: nobody's; outlives this.
  void open(const MakeDispatch& make, policy::DeadlineFamily* deadlines = nullptr);
  // Whether tasks are kept waiting for more than memory and the placement policy.
  bool keeps_devices() const { return deadlines_ != nullptr; }

  // The scheduler is about to be asked for a device for the virtual device's task.
  void waits(const Session& session, const VirtualDevice& device);
  // The virtual device's task was granted its device; `restored`: before heddled was restarted.
  void joined(const Session& session, VirtualDevice& device, bool restored = false);
  // A worker serves the task.
  void ready(const Session& session, VirtualDevice& device);
  // Its task is over, or is being stopped: what of it still runs there is of no account. One that never had a device
  // waits no longer.
  void left(const Session& session, const VirtualDevice& device);

  // What its worker says (messages.h), of the task that it has now.
  void backlog(const Session& session, const VirtualDevice& device);
  void drained(const Session& session, const VirtualDevice& device);
  void returned(const Session& session, const VirtualDevice& device, uint64_t generation);

  // Its worker is gone, or off its device, and another will serve the task: it has no lease, and says anew what it has
  // to do.
  void worker_gone(const Session& session, const VirtualDevice& device);

  // What comes of an order to terminate its worker (terminations.h): it is wanted still; it is about to be killed, and
  // worker_gone() follows; or not, because of `why`.
  bool awaits_termination(const Session& session, const VirtualDevice& device) const;
  void terminated(const Session& session, const VirtualDevice& device);
  void not_terminated(const Session& session, VirtualDevice& device, const std::string& why);

  // LeasesDue has come.
  void due(DeviceId device);
  // Once a turn, before the scheduler decides and behind decide(). True: the scheduler is to look anew at who waits.
  bool plan();
  // Once a turn, behind its events: lends and withdraws.
  void decide();

  // For people to see. None where the device is not lent, or the task has none.
  struct View {
    const char* state;  // "held", "draining", "waits", "idle"
    TimePoint since;
  };
  std::optional<View> view(const Session& session, const VirtualDevice& device) const;
  // Whose leases of the device are out, by lessee: those that are held, and any that drain. Empty where it is not lent.
  struct Holder {
    SessionId session;
    View view;
  };
  std::vector<Holder> holders(DeviceId device) const;
  // How soon the device is to be had back from a batch job, and how that went so far. None where nothing is revoked.
  struct Bound {
    Duration window, revocation;  // what may be in flight; what it takes then, as the policy reckons
    uint64_t measured;            // how often that was measured
    const policy::Sla* sla;       // of those whose lease was taken back, since a restart of heddled
  };
  std::optional<Bound> bound(DeviceId device) const;

 private:
  struct Lessee {
    bool user_facing = false;
    bool prompt = false;    // says at once that it has nothing more to do, whether others wait or not
    bool on_host = false;   // a part of its memory may be promoted (open_lease.h)
    protocol::Lease lease;  // as it stands on the page
    bool out = false;       // lent and not back
    bool stray = false;     // it stands for what its worker was doing before a restart
    bool pending = false;   // has work, says its worker
    bool overdue = false;   // was reported
    TimePoint since{};      // of the state that view() tells; a lease that drains does so since it ended
    TimePoint ends{};       // of a lease that is out: when it was withdrawn, or its time is over; max: not yet
    protocol::Usage told;   // to the policy
    Revocation revocation;
    RequestClock request;

    bool always_wanted() const { return prompt || on_host; }
    bool has_turn(TimePoint now) const { return out && lease.state == protocol::Lease::State::kHeld && now < ends; }
    std::optional<TimePoint> overdue_at(const Shared& shared) const;
  };
  struct Device {
    DeviceId id;
    std::unique_ptr<policy::Dispatch> dispatch;
    std::map<policy::Lessee, Lessee> lessees;
    bool changed = false;
    policy::Sla sla;  // of revocations alone
    EventLoop::Timer timer;

    bool has_stray() const;
  };
  struct Found {
    Device* device = nullptr;
    Lessee* lessee = nullptr;
    policy::Lessee id;
  };

  Device* lent(DeviceId device);
  Found find(const Session& session, const VirtualDevice& device);
  VirtualDevice* ring_of(const policy::Lessee& id);
  void write(const policy::Lessee& id, const Lessee& lessee);
  void told(Device& on);
  void measure(Device& on, const policy::Lessee& id, Lessee& lessee);
  void measure_holders(Device& on);
  void burst_over(const Found& found);
  void end_request(const Session& session, Lessee& lessee);
  void waits_no_longer(const Session& session, const VirtualDevice& device);

  void decide(Device& on);
  void carry_out(Device& on, const policy::Lend& order);
  void carry_out(Device& on, const policy::Withdraw& order);
  View view_of(const Lessee& lessee) const;
  bool others_wait(const Device& on, const policy::Lessee& id) const;
  void say_who_is_wanted(Device& on);
  void report_overdue(Device& on);
  void schedule(Device& on);

  // Revocations (leases_revoked.cc).
  void revoke(const policy::Withdraw& order, Lessee& lessee);
  void revoke_strays(Device& on);

  Shared& shared_;
  std::vector<Device> devices_;  // by id
  policy::DeadlineFamily* deadlines_ = nullptr;
  bool unplanned_ = false;  // something has happened since plan()
};

}  // namespace heddle::daemon
