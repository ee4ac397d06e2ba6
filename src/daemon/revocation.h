#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "daemon/registry.h"
#include "policy/service.h"

namespace heddle::daemon {

// Of one lease: how it is taken back in the middle of a burst, what its holder would lose by that, and what came of it.
class Revocation {
 public:
  // The device is lent: what was done before cannot be lost.
  void begin(const VirtualDevice& device, TimePoint now);
  // What is under way, for a policy to go by.
  void describe(const VirtualDevice& device, TimePoint now, policy::Service& service);

  void withdrawn(TimePoint now) {
    if (!since_) since_ = now;
  }
  // False where the worker's termination was ordered already.
  bool order(TimePoint now) {
    if (ordered_) return false;
    ordered_ = now;
    return true;
  }
  void refuse() {
    ordered_.reset();
    refused_ = true;
  }
  bool is_ordered() const { return ordered_.has_value(); }
  bool was_refused() const { return refused_; }
  // The worker is about to be killed.
  void terminate(const VirtualDevice& device, TimePoint now);

  // The lease is back. Those that are null count nothing.
  void end(TimePoint now, std::array<policy::Sla*, 2> books);

 private:
  // Work that is run again takes as long as it had taken when its worker was terminated, at least.
  struct Outlived {
    Duration time{};
    uint64_t behind = 0;  // of the ring's records, the last one that was done
  };
  void forget_lease();
  Duration drain(Duration elapsed) const;

  Outlived outlived_;                          // kept from one lease to the next
  std::optional<TimePoint> since_, ordered_;   // the withdrawal; the order to terminate
  bool terminated_ = false, refused_ = false;  // its worker was killed; it would not outlive that
  Duration lost_{};                            // by that
  uint64_t completed_ = 0;                     // records, at the last look
  uint64_t looked_ns_ = 0, committed_ns_ = 0;  // busy time then, and at the last look before records were done
};

}  // namespace heddle::daemon
