#pragma once

#include "policy/deadline/deadline.h"

namespace heddle::policy {

// Priority (TReM): a device for every request. Where none is idle, one is revoked for each that waits: the one whose
// batch lessee would lose the least work, or, for a lessee that has a device already, that one.
//
//   a device falls idle   the request with the earliest deadline, then batch
//   a request waits       idle devices and those that are being revoked are fewer than those that wait: one more is
//                         revoked, of equal ones the one with the least uncommitted work. It does not matter whether
//                         the request can still end in time, but for when work is lost for it (deadline.h)
//
// So batch runs in what requests leave at each moment, and much of its work may be run again: as many revocations as
// requests at worst.
class Priority : public Deadline {
 public:
  using Deadline::Deadline;

 protected:
  bool revokes_any() const override { return true; }
};

}  // namespace heddle::policy
