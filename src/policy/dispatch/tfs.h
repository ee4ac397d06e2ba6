#pragma once

#include "policy/dispatch/turn_taking.h"

namespace heddle::policy {

// True fair share (Rain section 4.2.2): as fs, but by what each has had of the device, so that who overshoots its slice
// (long kernels, a slow drain) has less in the slices to come.
//
//   each 100 ms   a job that had work in them gets its part of them by weight as credit, up to twice that
//   who is next   the largest credit by weight; of equal ones who has waited longest
//   slice         the credit as it is at the lend, at least 5 ms, at most 100 ms
//   used          goes off the credit, drain and overshoot included, while another job has work
//
// So it is work conserving: what one does not use others have, and pay nothing for while nobody else waits.
//
// Left open by the paper, and chosen: the figures; that credit ends at four epochs below nothing, so that a job with
// kernels of seconds owes 0.4 s of the device at most, which come back at the rate of its share: after 0.8 s beside one
// other of equal weight, after 200 s beside 499; that an epoch in which one job alone had work changes nothing, so that
// it does not save up against those who come; shares are a job's; copies count as use.
class Tfs : public TurnTaking {
 protected:
  const Lessees::Member& choose(const Lessees& lessees) override;
  Duration slice(const Lessees::Member& /*member*/, const Lessees& /*lessees*/) const override { return slice_; }
  void used(Lessees::Job& job, Duration amount, Duration contended) override;
  void advance(Lessees& lessees, TimePoint now) override;

 private:
  TimePoint epoch_{};  // when the present one began
  Duration slice_{};   // of whoever was chosen last: what it uses goes off its credit meanwhile, and not off its slice
};

}  // namespace heddle::policy
