#pragma once

#include <cstdint>

#include "core/units.h"
#include "policy/percentiles.h"

namespace heddle::policy {

// How jobs of a class, or a single job, were served: what of their requests was met, and what taking devices back from
// them cost. Memory does not grow with what is counted.
class Sla {
 public:
  // A request: a burst of a user-facing job, from its arrival (its first record, or the request for a device where it
  // has none) to its end. Met where that is within the SLO. `wait`: until its first work was issued.
  void request_ended(Duration took, Duration wait, Duration slo);
  // One that will not be met any more: still open although its SLO has passed, or failed.
  void request_missed() { ++missed_; }

  // A lease of theirs was taken back: `latency` from the decision to the device being free.
  void revoked(Duration latency, bool terminated);
  // Busy time, of which `lost` had not been committed when a worker was terminated, and is run again.
  void was_busy(Duration busy) { busy_ += busy; }
  void work_lost(Duration lost) { lost_ += lost; }
  // A worker was to be terminated, and was not, because its task would not have outlived it.
  void not_terminated() { ++not_terminated_; }

  void add(const Sla& other);

  uint64_t requests() const { return met_ + missed_; }
  uint64_t met() const { return met_; }
  uint64_t missed() const { return missed_; }
  // Of all requests; 1 of none.
  double share_met() const;
  const Percentiles& times() const { return times_; }
  const Percentiles& waits() const { return waits_; }

  uint64_t revocations() const { return latencies_.count(); }
  uint64_t terminations() const { return termination_latencies_.count(); }
  uint64_t terminations_refused() const { return not_terminated_; }
  const Percentiles& revocation_latencies() const { return latencies_; }
  const Percentiles& termination_latencies() const { return termination_latencies_; }  // among those
  Duration busy() const { return busy_; }
  Duration lost() const { return lost_; }
  // Lost of busy time; 0 of none.
  double share_lost() const;

 private:
  uint64_t met_ = 0, missed_ = 0, not_terminated_ = 0;
  Percentiles times_, waits_, latencies_, termination_latencies_;
  Duration busy_{}, lost_{};
};

}  // namespace heddle::policy
