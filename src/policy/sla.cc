#include "policy/sla.h"

namespace heddle::policy {

void Sla::request_ended(Duration took, Duration wait, Duration slo) {
  ++(took <= slo ? met_ : missed_);
  times_.add(took);
  waits_.add(wait);
}

void Sla::revoked(Duration latency, bool terminated) {
  latencies_.add(latency);
  if (terminated) termination_latencies_.add(latency);
}

void Sla::add(const Sla& other) {
  met_ += other.met_;
  missed_ += other.missed_;
  not_terminated_ += other.not_terminated_;
  times_.add(other.times_);
  waits_.add(other.waits_);
  latencies_.add(other.latencies_);
  termination_latencies_.add(other.termination_latencies_);
  busy_ += other.busy_;
  lost_ += other.lost_;
}

double Sla::share_met() const {
  return requests() == 0 ? 1 : static_cast<double>(met_) / static_cast<double>(requests());
}

double Sla::share_lost() const {
  return busy_ <= Duration{} ? 0 : static_cast<double>(lost_.count()) / static_cast<double>(busy_.count());
}

}  // namespace heddle::policy
