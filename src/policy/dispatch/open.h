#pragma once

#include "policy/dispatch/dispatch.h"

namespace heddle::policy {

// Everybody may issue at any time; the hardware decides, as it does without heddle: time slices between processes, or
// what fits side by side under MPS.
class Open : public Dispatch {
 public:
  bool exclusive() const override { return false; }
  void joined(Lessee, const Tenant&, TimePoint) override {}
  void left(Lessee, TimePoint) override {}
  void pending(Lessee, TimePoint) override {}
  void drained(Lessee, TimePoint) override {}
  void served(Lessee, const Service&, TimePoint) override {}
  void returned(Lessee, TimePoint) override {}
  void decide(TimePoint, std::vector<LeaseOrder>&) override {}
  std::optional<TimePoint> next(TimePoint) const override { return {}; }
};

}  // namespace heddle::policy
