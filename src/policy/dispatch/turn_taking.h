#pragma once

#include "policy/dispatch/dispatch.h"
#include "policy/dispatch/lessees.h"

namespace heddle::policy {

// What dispatch policies have in common that lend the device to one lessee at a time, or to a few: who has work, who
// holds a lease, and when his turn is over. A policy says who is next and for how long.
//
// A turn ends when its slice is over, or kMergeGap after the holder's work has ended, if others wait then; else a
// lessee keeps the lease. The next is lent the device when one has drained, so that at no time more leases are out than
// there may be. Where others wait already the lease ends by itself (Lend::until), without a message in between.
//
// What a lessee used: what was measured (busy time and copies), but at most the time for which it held the lease, and
// at least half of that in which it had work too. So who holds the device and waits for his host in the middle of a
// burst pays for it, as does a worker that measures nothing.
class TurnTaking : public Dispatch {
 public:
  void joined(Lessee lessee, const Tenant& tenant, TimePoint now) final;
  void left(Lessee lessee, TimePoint now) final;
  void pending(Lessee lessee, TimePoint now) final;
  void drained(Lessee lessee, TimePoint now) final;
  void served(Lessee lessee, const Service& since_last, TimePoint now) final;
  void returned(Lessee lessee, TimePoint now) final;
  void decide(TimePoint now, std::vector<LeaseOrder>& out) final;
  std::optional<TimePoint> next(TimePoint now) const final;

 protected:
  // So many have the device at a time, at least 1.
  explicit TurnTaking(size_t most = 1) : most_(most) {}
  size_t most() const { return most_; }

  // Of those that wait, of which there is at least one.
  virtual const Lessees::Member& choose(const Lessees& lessees) = 0;
  // How long its turn lasts, as things are now, counted from when it was lent the device.
  virtual Duration slice(const Lessees::Member& member, const Lessees& lessees) const = 0;
  // Whether the holder, who has work, is to have another slice although others wait. A policy that may say so takes
  // leases back itself instead of having them end.
  virtual bool may_go_on() const { return false; }
  virtual bool goes_on(const Lessees::Member& /*holder*/, const Lessees& /*lessees*/) const { return false; }
  // The job has used so much more of the device, `contended` of it while another job had work: what is used is counted
  // against contended time first, because measurements come late.
  virtual void used(Lessees::Job& /*job*/, Duration /*amount*/, Duration /*contended*/) {}
  // Time goes on to `now`, before what then happens.
  virtual void advance(Lessees& /*lessees*/, TimePoint /*now*/) {}

 private:
  struct Holder {
    Lessee lessee;
    TimePoint since;
    TimePoint turn;  // when the present slice began
    TimePoint until;
    bool withdrawn = false;
    Duration working{}, measured{}, charged{};  // with work; of that, measured; counted as used so far
    Duration contended{};                       // time for which nothing was counted as used yet
  };

  void pass(TimePoint now);
  void charge(Holder& holder, const Service& more, TimePoint now);
  Holder* find_holder(Lessee lessee);
  // Charges it for the last time; nothing where it holds no lease.
  void lease_over(Lessee lessee, TimePoint now);
  // It is there to be withdrawn, once its turn is over and others wait.
  static bool is_held(const Holder& holder, TimePoint now) { return !holder.withdrawn && now < holder.until; }
  TimePoint turn_ends(const Holder& holder) const;
  void lend(TimePoint now, std::vector<LeaseOrder>& out);

  const size_t most_;
  Lessees lessees_;
  std::vector<Holder> holders_;  // in the order in which they were lent the device
  TimePoint seen_{};
};

}  // namespace heddle::policy
