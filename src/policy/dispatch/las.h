#pragma once

#include "policy/dispatch/turn_taking.h"

namespace heddle::policy {

// Least attained service (Rain section 4.2.1): the job that has had least of the device goes first, so that short
// episodes are over soon and their programs' hosts do not wait.
//
//   who is next   least attained; of equal ones who has waited longest
//   at a time     one, or `n` (las:n), for devices that run programs together, as they do through MPS
//   quantum       10 ms; at its end the lease is withdrawn only where others with work have attained less, as many
//                 as may have the device at a time
//   attained      what was used of the device, halved each second, so that the past fades
//
// All that is attained fades alike, so who has had more than another is not served again before him: with m that have
// work, and nobody new, nobody who has had one turn waits for more than 2 m quanta and what drains behind each.
// Newcomers go first.
//
// Left open by the paper, and chosen: the quantum and how the past fades; that a new job begins at 0; that attained
// service is a job's; how many lessees at a time have the device; copies count as use. Who has it with others is
// charged for the time in which anything of it was there, as if it had been alone.
class Las : public TurnTaking {
 public:
  static constexpr uint32_t kMostAtATime = 48;  // as many clients as MPS has at once

  explicit Las(uint32_t at_a_time = 1) : TurnTaking(at_a_time) {}

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
