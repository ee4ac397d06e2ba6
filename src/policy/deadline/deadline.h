#pragma once

#include "policy/deadline/model_state.h"
#include "policy/dispatch/dispatch.h"

namespace heddle::policy {

// How a device is taken back from a batch lessee in the middle of a burst.
enum class Revocation {
  kOff,   // not at all: its burst ends
  kSoft,  // it is withdrawn: what is in flight ends, the rest of the burst waits
  kHard,  // the same, but what is in flight is terminated and run again where a waiting request would else be late:
          // at once, or when what seemed to end in time did not
};

// What the policy reckons that it takes to have a device back, and how often that was measured: 22 ms before it was
// measured eight times. Soft revocations count under a policy that has no others, else those by termination.
struct RevocationTime {
  Duration time{};
  uint64_t measured = 0;
  bool terminates = false;
};

// Deadlines (TReM): who of the lessees of all devices of a model issues work where, so that requests of user-facing
// jobs end within their SLOs, and which devices batch jobs must give up for that. One lessee at a time on a device;
// what a request is and who goes before whom stands in model_state.h.
//
//   placement    late, on a device that is idle then, so that all devices have one line: requests first, then batch
//                tasks, which go where nobody else has work
//   revocation   only for requests that can still end in time, at most one for each
//   overload     where not all requests that wait for a device could end in time on all devices together, the longest
//                are given up, so that as few as possible are late (Moore and Hodgson's rule for one machine)
//   turns        batch lessees, and requests that are late, have a second each where others wait for their device
//
// So batch runs in what requests leave: where they need all devices, it waits.
//
// What differs from policy to policy is which devices are reserved for requests, and which may be revoked: see
// priority.h, elastic.h, fifo.h. Left open by the paper, and chosen: all of the above, and when hard revocation
// terminates.
//
// Work of a decision: in proportion to the devices and to the requests that wait and can still end in time.
class Deadline {
 public:
  Deadline(const std::vector<DeviceId>& devices, Revocation revocation, bool has_classes = true);
  virtual ~Deadline() = default;

  // What has happened is told to the state.
  ModelState& state() { return state_; }

  // As PlacementGate, as of the last plan().
  bool is_special(Lessee lessee) const;
  const std::vector<Lessee>& next_requests() const { return may_go_; }
  bool may_go(Lessee lessee) const;
  bool open(Lessee lessee, DeviceId device) const;
  void placed(Lessee lessee, DeviceId device);

  // Looks at all devices and all who wait. True where who may go where has changed since it was said last, or a device
  // is to be taken back: the scheduler and the dispatch of all devices are to decide then.
  bool plan(TimePoint now);
  // As Dispatch, of one device.
  void decide(DeviceId device, TimePoint now, std::vector<LeaseOrder>& out);
  std::optional<TimePoint> next(DeviceId device, TimePoint now) const;
  // None where nothing is revoked.
  std::optional<RevocationTime> revocation(DeviceId device) const;

 protected:
  using Member = ModelState::Member;
  using Place = ModelState::Place;

  // Says anew which places are reserved.
  virtual void reserve(TimePoint /*now*/) {}
  // When it wants to do so if nothing happens before.
  virtual std::optional<TimePoint> next_reservation(TimePoint /*now*/) const { return {}; }
  // Whether a place that is not reserved may be revoked for a request that has no device.
  virtual bool revokes_any() const { return false; }

  const ModelState& state() const { return state_; }
  // Requests without a device that can still end in time, by deadline: as of plan().
  const std::vector<const Member*>& live_requests() const { return live_; }

 private:
  void look(TimePoint now);
  void give_up_some(TimePoint now);
  void open_places();
  void revoke_for_requests(TimePoint now);
  const Member* first_waiting(const Place& place, TimePoint now) const;
  std::optional<TimePoint> kept_until(const Place& place, TimePoint now) const;
  std::optional<TimePoint> terminates_at(const Place& place, const Member& holder, TimePoint now) const;
  std::optional<TimePoint> gives_way(const Place& place, const Member& holder, TimePoint now) const;
  void lend(Place& place, TimePoint now, std::vector<LeaseOrder>& out);
  void withdraw(Place& place, bool terminate, TimePoint now, std::vector<LeaseOrder>& out);

  const Revocation revocation_;
  ModelState state_;

  // As of the last look.
  uint64_t version_ = 0;
  TimePoint looked_{};
  bool changed_ = false;  // and it was not said yet
  std::vector<const Member*> live_;
  std::vector<Lessee> may_go_;                      // of all requests without a device
  std::vector<DeviceId> for_requests_, for_batch_;  // that may be placed
  size_t batch_slots_ = 0;                          // batch tasks that may be
};

}  // namespace heddle::policy
