#pragma once

#include "policy/deadline/deadline_policy.h"

namespace heddle::policy {

// How a device is taken back from a batch lessee in the middle of a burst.
enum class Revocation {
  kOff,   // not at all: its burst ends, or its turn
  kSoft,  // it is withdrawn: what is in flight ends, the rest of the burst waits
  kHard,  // the same, but what is in flight is terminated and run again where a waiting request would else be late,
          // on this device and on all others: at once, or when what seemed to end in time did not
};

// Deadlines (TReM): who of the lessees of all devices of a model issues work where, so that requests of user-facing
// jobs end within their SLOs, and which devices batch jobs must give up for that. One lessee at a time on a device;
// what a request is and who goes before whom stands in model_state.h.
//
//   placement    late, on a device that is idle then, so that all devices have one line: requests first, then batch
//                tasks, which go where nobody else has work. A device is kept for a request that was placed there
//                until its worker is there (two seconds at most) and it begins (10 ms from then on)
//   revocation   at most one for each request
//   overload     where not all requests that wait for a device could end in time on all devices together, the longest
//                are given up, so that as few as possible are late (Moore and Hodgson's rule for one machine)
//   late         a request that is late, or was given up, still goes before batch. No work of batch is lost for it
//                before batch has had its turn, as that makes no request be in time
//   turns        batch lessees, and requests that are late, have a second each where others wait for their device
//
// So batch runs in what requests leave: where they need all devices, it waits. How long a request waits behind batch,
// at most, once no other request is in front of it and where it finds its memory free:
//
//   one that can still end in time   as reserve() and revokes_any() say
//   late, where any may be revoked   what is in flight when it comes; where workers are terminated, at most until batch
//                                    has had the device for that second, and a termination
//   late, elsewhere                  until that second is over, and what is in flight then, or a termination
//
// That holds whatever revocations have been measured to take: a request that would be late only because one takes long
// is not given up. One that finds no memory on a device that was taken back for it is tried again when the batch lessee
// that has it instead has had its turn, and nothing is terminated for it: it may wait for just that one's memory.
//
// What differs from policy to policy is which devices are reserved for requests, and which may be revoked: see
// priority.h, elastic.h, fifo.h. Left open by the paper, and chosen: all of the above, and when hard revocation
// terminates.
//
// Work of a decision: in proportion to the devices and to the requests that wait and can still end in time.
class Deadline : public DeadlinePolicy {
 public:
  Deadline(const std::vector<DeviceId>& devices, Revocation revocation, bool has_classes = true);

  bool may_go(Lessee lessee) const override;
  bool open(Lessee lessee, DeviceId device) const override;
  void placed(Lessee lessee, DeviceId device) override;

  bool plan(TimePoint now) override;
  void decide(DeviceId device, TimePoint now, std::vector<LeaseOrder>& out) override;
  std::optional<TimePoint> next(DeviceId device, TimePoint now) const override;
  std::optional<RevocationTime> revocation(DeviceId device) const override;

 protected:
  using Member = ModelState::Member;
  using Place = ModelState::Place;

  // Says anew which places are reserved.
  virtual void reserve(TimePoint /*now*/) {}
  // When it wants to do so if nothing happens before.
  virtual std::optional<TimePoint> next_reservation(TimePoint /*now*/) const { return {}; }
  // Whether a place that is not reserved may be revoked for a request that has no device; without waiting for the end
  // of a turn, if the request is late.
  virtual bool revokes_any() const { return false; }

  // Requests without a device that can still end in time, by deadline: as of plan().
  const std::vector<const Member*>& live_requests() const { return live_; }
  // Those of them that do so if revocations take as long as they are reckoned to.
  const std::vector<const Member*>& planned_requests() const { return planned_; }

 private:
  void look(TimePoint now);
  void give_up_some(TimePoint now);
  void open_places(TimePoint now);
  // Devices that requests without one are going to have: idle, or revoked and not of a request that has one.
  struct Coming {
    size_t count = 0;     // in time, as far as is known
    size_t draining = 0;  // and those whose holder was to be terminated, and could not be
    size_t in_hurry = 0;  // of the first, for requests that can still end in time
    void add(const Place& place);
  };
  void revoke_for_requests(TimePoint now);
  void revoke_for_its_own(Place& place, TimePoint now) const;
  void revoke_for_live(const std::vector<Place*>& others, Coming& coming);
  void revoke_for_late(const std::vector<Place*>& others, Coming& coming, TimePoint now);
  size_t late_that_revoke(const Place& place, size_t most, TimePoint now) const;
  bool would_drain(const Place& place) const;
  const Member* first_waiting(const Place& place, TimePoint now) const;
  std::optional<TimePoint> kept_until(const Place& place, TimePoint now) const;
  bool is_waited_for_late(const Place& place, TimePoint now) const;
  bool end_in_time_elsewhere(const Place& place, TimePoint now) const;
  std::optional<TimePoint> terminates_at(const Place& place, const Member& holder, TimePoint now) const;
  std::optional<TimePoint> next_taken_back(TimePoint now) const;
  std::optional<TimePoint> gives_way(const Place& place, const Member& holder, TimePoint now) const;
  void lend(Place& place, TimePoint now, std::vector<LeaseOrder>& out);
  void withdraw(Place& place, bool terminate, TimePoint now, std::vector<LeaseOrder>& out);

  const Revocation revocation_;

  // As of the last look.
  uint64_t version_ = 0;
  TimePoint looked_{};
  bool changed_ = false;  // and it was not said yet
  std::vector<const Member*> live_, planned_;
  std::optional<TimePoint> takes_back_;             // a device for requests without one
  std::vector<DeviceId> for_requests_, for_batch_;  // that may be placed
  size_t batch_slots_ = 0;                          // batch tasks that may be
};

}  // namespace heddle::policy
