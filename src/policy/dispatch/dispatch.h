#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "policy/lessee.h"
#include "policy/service.h"

namespace heddle::policy {

// The lessee may issue work on the device from now on. At `until` its worker stops by itself: it takes nothing more out
// of the ring, drains and returns the lease.
struct Lend {
  Lessee to;
  TimePoint until = TimePoint::max();
  // A burst that would not end before `until`, going by the longest single one of the last seconds, is not begun: the
  // lease goes back first. A burst that comes first with a lease is begun all the same.
  bool whole_bursts = false;
};
// The lessee's worker is to stop, to drain and to return the lease.
struct Withdraw {
  Lessee from;
  // What is in flight is not waited for: the worker is terminated, and what was not committed is run again by another
  // one when the lessee is lent the device anew. May follow a withdrawal without it. Where the lessee would not outlive
  // its worker, it is a withdrawal without it, and `not_terminated` follows.
  bool terminate = false;
};
using LeaseOrder = std::variant<Lend, Withdraw>;

// A dispatch policy: which of a device's lessees may issue work now. One object for each device. Events and a clock
// value in, orders out; no clock, no I/O, so the same events at the same times give the same orders.
//
// A lessee without the lease keeps its memory and its worker; its records wait in its ring. A lease goes from lent to
// idle only by `returned` (or `left`): after a Withdraw, after `until`, or because the worker gave it back for a reason
// of its own. The caller carries every order out, in order, and tells policies only of lessees that have joined; time
// never goes back.
class Dispatch {
 public:
  virtual ~Dispatch() = default;

  // False: everybody may issue at any time, there are no leases and no orders, and no event need be told.
  virtual bool exclusive() const { return true; }
  // True: the objects of all devices belong together (deadline/). What one is told may lead to orders of another, so
  // that all of them are asked to decide.
  virtual bool spans_devices() const { return false; }

  // A task of the lessee has this device. It has nothing pending yet.
  virtual void joined(Lessee lessee, const Tenant& tenant, TimePoint now) = 0;
  // Its worker is there: when its first burst begins is its program's affair from now on. May be said again. To
  // deadline policies alone: it stands in no input log.
  virtual void ready(Lessee /*lessee*/, TimePoint /*now*/) {}
  // It has the device no longer and nothing of it runs there, or what runs is of no account any more. A lease that it
  // held is idle: no `returned` follows. May join again.
  virtual void left(Lessee lessee, TimePoint now) = 0;

  // A burst begins: it has records to issue, whether it holds the lease or not. Said again while it has: nothing new.
  virtual void pending(Lessee lessee, TimePoint now) = 0;
  // Its burst is over: nothing pending and nothing in flight.
  virtual void drained(Lessee lessee, TimePoint now) = 0;

  // What was measured since it was last said, of a lessee that holds the lease or has just drained. Said before
  // `returned`, `left` and each decide(), so that they go by the latest figures; policies bear with it being late.
  virtual void served(Lessee lessee, const Service& since_last, TimePoint now) = 0;

  // The lease is idle again: the lessee's worker has drained what it was lent the device for. Whether it still has
  // records pending stays as it was said.
  virtual void returned(Lessee lessee, TimePoint now) = 0;

  // The order to terminate its worker came to nothing: what is in flight ends, and then the lease is back.
  virtual void not_terminated(Lessee /*lessee*/, TimePoint /*now*/) {}

  // Appends what is to be done now. Call it after each batch of events, and when next() has come.
  virtual void decide(TimePoint now, std::vector<LeaseOrder>& out) = 0;
  // When decide() wants to be called if no event comes before; none: not at all. Not before `now`.
  virtual std::optional<TimePoint> next(TimePoint now) const = 0;
};

}  // namespace heddle::policy
