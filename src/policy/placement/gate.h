#pragma once

#include <vector>

#include "policy/lessee.h"

namespace heddle::policy {

// Which requests for a device may be placed now, and where, besides what memory and the placement policy say: deadline
// policies keep devices for those who are in a hurry. Asked by the scheduler about requests of sessions that hold
// nothing; who holds something is never kept back, since others may wait for just that.
class PlacementGate {
 public:
  virtual ~PlacementGate() = default;

  // Another one when answers are others than before.
  virtual uint64_t version() const = 0;

  // Whether the gate says for each such request by itself when it may go: it is attempted when it arrives, and when it
  // is one of next(). Others of its need are answered for together.
  virtual bool is_special(Lessee lessee) const = 0;
  // Those of them that may go now, first to last: before all others, whatever their ages. A few more than devices are
  // open, at most.
  virtual std::vector<Lessee> next() const = 0;
  // Whether the request may be placed at all now.
  virtual bool may_go(Lessee lessee) const = 0;
  // Whether it may be placed there.
  virtual bool open(Lessee lessee, DeviceId device) const = 0;
  // It was, which may close the device to others.
  virtual void placed(Lessee lessee, DeviceId device) = 0;
};

}  // namespace heddle::policy
