#pragma once

#include "policy/dispatch/dispatch.h"
#include "policy/dispatch/lessees.h"

namespace heddle::policy {

// What dispatch policies have in common that lend the device to one lessee at a time: who has work, who holds the
// lease, and when his turn is over. A policy says who is next and for how long.
//
// A turn ends when its slice is over, or kMergeGap after the holder's work has ended, if others have work then; alone,
// a lessee keeps the lease. The next is lent the device when the last has drained, so that at no time two leases are
// out. Where others have work already the lease ends by itself (Lend::until), without a message in between.
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
  // Of those with work, of which there is at least one.
  virtual const Lessees::Member& choose(const Lessees& lessees) = 0;
  // How long its turn lasts, as things are now, counted from when it was lent the device.
  virtual Duration slice(const Lessees::Member& member, const Lessees& lessees) const = 0;
  // Whether the holder, who has work, is to have another slice although others have work. A policy that may say so
  // takes leases back itself instead of having them end.
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
  void charge(const Service& more, TimePoint now);
  bool holds(Lessee lessee) const { return holder_ && holder_->lessee == lessee; }
  bool others_wait() const;
  TimePoint turn_ends() const;
  void lend(TimePoint now, std::vector<LeaseOrder>& out);

  Lessees lessees_;
  std::optional<Holder> holder_;
  TimePoint seen_{};
};

}  // namespace heddle::policy
