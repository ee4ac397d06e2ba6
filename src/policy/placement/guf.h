#pragma once

#include "policy/placement/rtf.h"

namespace heddle::policy {

// GPU utilization feedback (Rain section 4.3): applications that use a device much of their time are kept apart. The
// device where the utilizations of the jobs assigned there, and the new one's, add up to least; of equals as rtf.
// gwtmin where nothing is known of the application.
//
// The paper has two denominators for an application's utilization: its total execution time, and its system and user
// time. guf takes the time for which it was there, because programs sleep while they wait for their device; guf:cpu
// takes the user and system time of its programs (their own: what workers compute is not theirs), and the other time
// where that is not known. By that, who computes much itself counts little however long its bursts are. Such a
// utilization may be more than 1, and counts as at most History::kMostByHost. Jobs of applications without history
// count as the mean of all.
class Guf : public Rtf {
 public:
  explicit Guf(bool by_host = false) : by_host_(by_host) {}
  std::unique_ptr<Placement> clone() const override { return std::make_unique<Guf>(*this); }

 protected:
  double utilization_of(const History::Entry& entry) const override {
    return by_host_ ? entry.by_host : entry.utilization;
  }
  Placed choose(const Request& request, std::span<const DeviceId> fitting, const Pool& pool) const override;

 private:
  const bool by_host_;
};

}  // namespace heddle::policy
