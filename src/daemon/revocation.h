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
  void refuse(TimePoint now) {
    ordered_.reset();
    refused_ = now;
  }
  bool is_ordered() const { return ordered_.has_value(); }
  // Not soon after it was refused: a worker that did not stop in time may do so the next time, and what did not outlive
  // its worker may do so later.
  bool may_be_ordered(const VirtualDevice& device, TimePoint now) const;
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
  std::optional<TimePoint> refused_;           // it would not have outlived that, or did not stop
  bool terminated_ = false;                    // its worker was killed
  Duration lost_{};                            // by that
  uint64_t completed_ = 0;                     // records, at the last look
  uint64_t looked_ns_ = 0, committed_ns_ = 0;  // busy time then, and at the last look before records were done
};

}  // namespace heddle::daemon
