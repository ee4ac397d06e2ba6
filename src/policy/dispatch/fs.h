#pragma once

#include "policy/dispatch/turn_taking.h"

namespace heddle::policy {

// Fair share (Rain section 4.2.2): at any time at most one lessee uses the device, and it does so for a time in
// proportion to its job's weight: of each round of 100 ms, its part of the weights of all that have work. The round
// goes by id. Wall time counts; what drains afterwards does not, so that long kernels get more than their share: tfs is
// the policy that accounts for them.
//
// With n that have work, of equal weights, nobody waits for more than n slices, of 100 ms / n and at least 1 ms, and
// what drains behind each.
//
// Left open by the paper, and chosen: the length of a round, and that no slice is below 1 ms; that shares are a job's,
// its lessees with work having equal parts of it; that who has nothing to do for kMergeGap gives way.
class Fs : public TurnTaking {
 protected:
  const Lessees::Member& choose(const Lessees& lessees) override;
  Duration slice(const Lessees::Member& member, const Lessees& lessees) const override;

 private:
  Lessee last_;  // lent the device last: the round goes on behind it
};

}  // namespace heddle::policy
