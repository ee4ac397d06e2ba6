#pragma once

#include <span>

#include "core/address_map.h"
#include "core/clock.h"
#include "core/device_model.h"
#include "worker/write_set.h"

namespace heddle::worker {

// Which of the task's segments lie on the host while it runs (Eager Launch; eager scheduling report, section 5.2), and
// how long a kernel would move bytes of theirs over the bus. Issuer's thread only.
class HostPart {
 public:
  void add(uint64_t number, uint64_t address, Bytes size) { segments_.add(address, size.value, number); }
  void remove(uint64_t address) { segments_.remove(address); }
  bool empty() const { return segments_.begin() == segments_.end(); }

  // By what the launch's parameters lead to; what a kernel finds by addresses in memory is not seen. A segment that it
  // only writes counts once, as most memory is written once; one that it reads counts kReads times, as several threads
  // read each byte. Zero where it reaches none, or takes no time there. Of a kernel whose effects are not known,
  // every parameter counts as read.
  Duration time_of(const KernelUse& kernel, std::span<const std::byte> parameters, const DeviceModel& model) const;

  static constexpr uint64_t kReads = 8;

 private:
  using Segments = AddressMap<uint64_t>;
  Segments segments_;  // their numbers
};

// A kernel that would reach the task's memory on the host waits for a while, as that memory may be promoted
// meanwhile: for as long as it would take over the bus. So it takes twice as long as if it had not waited at worst, and
// where memory returns soon it runs at the device's speed. (The rent of the ski rental problem.)
class PromotionWait {
 public:
  // Whether the record may not go yet. `over_bus()`: what time_of() says of it; asked once for a record.
  template <class OverBus>
  bool holds(uint64_t sequence, TimePoint now, OverBus over_bus) {
    if (sequence != sequence_) until_ = now + over_bus();
    sequence_ = sequence;
    holds_ = now < until_;
    return holds_;
  }
  // There is nothing to wait for any more.
  void none() { holds_ = false; }
  // As it last was.
  bool holds() const { return holds_; }
  TimePoint until() const { return until_; }

 private:
  uint64_t sequence_ = 0;  // of the record that was asked about last
  TimePoint until_{};
  bool holds_ = false;
};

}  // namespace heddle::worker
