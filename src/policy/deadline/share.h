#pragma once

#include <algorithm>

#include "policy/deadline/deadline_policy.h"

namespace heddle::policy {

// How many of a device's SMs are batch's, where these are so many percent: at least one.
inline uint32_t batch_sms_of(uint32_t sms, uint32_t percent) {
  return std::max(1u, sms * percent / 100);
}

// Headroom instead of revocation: nothing is taken back for requests, because batch leaves a part of each device's SMs
// to them all the time. For devices that run programs together; whoever starts workers sees to the part
// (DispatchEntry::bounds_batch).
//
//   requests    issue work as soon as they have it, beside whoever has the device; those without a device go before
//               batch, by deadline, to any that has memory for them
//   batch       one lessee at a time on a device, in turns of a second where others wait for it: side by side they
//               would fill each other's part, and the requests' too. Batch tasks are placed where no other has work
//
// A request waits for other requests on its device, and for what it shares with batch: caches, the memory's bandwidth,
// the bus. Batch has no more than its part even where there are no requests.
//
// Ours: on an H100 a small kernel beside batch at four fifths of the SMs takes 27 us in the median (HARDWARE.md, p2).
class Share : public DeadlinePolicy {
 public:
  explicit Share(const std::vector<DeviceId>& devices) : DeadlinePolicy(ModelState(devices, true, false)) {}

  bool may_go(Lessee lessee) const override;
  bool open(Lessee lessee, DeviceId device) const override;
  void placed(Lessee lessee, DeviceId device) override;

  bool plan(TimePoint now) override;
  void decide(DeviceId device, TimePoint now, std::vector<LeaseOrder>& out) override;
  std::optional<TimePoint> next(DeviceId device, TimePoint now) const override;
  std::optional<RevocationTime> revocation(DeviceId) const override { return {}; }

 private:
  using Member = ModelState::Member;
  using Place = ModelState::Place;

  const Member* next_batch(const Place& place, TimePoint now) const;
  std::optional<TimePoint> turn_ends(const Place& place, TimePoint now) const;

  // As of the last plan().
  uint64_t version_ = 0;
  std::vector<DeviceId> for_batch_;  // that batch tasks may be placed on, one on each
  std::optional<TimePoint> opens_;   // when there may be more of these, although nothing happens
};

}  // namespace heddle::policy
