#pragma once

#include "policy/deadline/deadline.h"

namespace heddle::policy {

// Elastic (TReM): the least number of devices with which requests end within their SLOs is reserved for them, and the
// others are batch's.
//
//   s, lambda   mean busy time of requests, and arrivals a second, both over the last 10 s
//   k           the larger of  ceil(lambda s / 0.8)
//                              the least with which all requests that wait and can still end in time do so: they are
//                              put one after the other, by deadline, on the device that is free first; a device that is
//                              to be revoked is free after what a revocation takes
//                              one, if a request waits that would be late only because a revocation takes so long
//   reserved    k devices, at most all: grown at once, shrunk when k was smaller for 4 s (elastic.cc says why). Members
//               stay; what comes in is idle, else what loses the least work
//
// Batch is placed on and lent the other devices only; the batch lessee of one that comes in is revoked. Requests go to
// any idle device, reserved or not. One that is not reserved is not taken from batch for a request that has no device,
// unless that is late and the batch lessee has had its turn of a second: so none waits for ever where none is reserved,
// as when no request came for ten seconds. A request whose lessee is on such a device has it revoked all the same. A
// batch lessee whose memory is on a device that comes in waits there until the device goes out again: up to 14 s after
// the last request, and for as long as they come.
//
// The paper says no more than "a minimum number of accelerators needed to sustain the SLA": all of this was chosen.
class Elastic : public Deadline {
 public:
  using Deadline::Deadline;

 protected:
  void reserve(TimePoint now) override;
  std::optional<TimePoint> next_reservation(TimePoint now) const override;

 private:
  std::vector<Place*> by_cost();

  std::optional<TimePoint> fewer_since_;  // since when fewer would do
};

}  // namespace heddle::policy
