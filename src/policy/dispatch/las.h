#pragma once

#include "policy/dispatch/turn_taking.h"

namespace heddle::policy {

// Least attained service (Rain section 4.2.1): the job that has had least of the device goes first, so that short
// episodes are over soon and their programs' hosts do not wait.
//
//   who is next   least attained; of equal ones who has waited longest
//   quantum       10 ms; at its end the lease is withdrawn only where another with work has attained less
//   attained      what was used of the device, halved each second, so that the past fades
//
// All that is attained fades alike, so who has had more than another is not served again before him: with n that have
// work, and nobody new, nobody who has had one turn waits for more than 2 n quanta and what drains behind each.
// Newcomers go first.
//
// Left open by the paper, and chosen: the quantum and how the past fades; that a new job begins at 0; that attained
// service is a job's; that one lessee at a time has the device; copies count as use.
class Las : public TurnTaking {
 protected:
  const Lessees::Member& choose(const Lessees& lessees) override;
  Duration slice(const Lessees::Member& member, const Lessees& lessees) const override;
  bool may_go_on() const override { return true; }
  bool goes_on(const Lessees::Member& holder, const Lessees& lessees) const override;
  void used(Lessees::Job& job, Duration amount, Duration contended) override;
  void advance(Lessees& lessees, TimePoint now) override;

 private:
  TimePoint faded_{};  // when it was halved last
};

}  // namespace heddle::policy
