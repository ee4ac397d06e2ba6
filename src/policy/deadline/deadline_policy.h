#pragma once

#include <utility>
#include <vector>

#include "policy/deadline/model_state.h"
#include "policy/dispatch/dispatch.h"

namespace heddle::policy {

// What the policy reckons that it takes to have a device back, and how often that was measured: 22 ms before it was
// measured eight times. Soft revocations count under a policy that has no others, else those by termination.
struct RevocationTime {
  Duration time{};
  uint64_t measured = 0;
  bool terminates = false;
};

// A deadline policy for all devices of a model: what DeadlineFamily asks of it. deadline.h has those that lend a device
// to one lessee at a time, share.h the one that lends it to requests beside batch.
class DeadlinePolicy {
 public:
  virtual ~DeadlinePolicy() = default;

  // What has happened is told to the state.
  ModelState& state() { return state_; }

  // As PlacementGate, as of the last plan().
  bool is_special(Lessee lessee) const {
    const ModelState::Member* member = state_.find(lessee);
    return member && state_.is_request(*member);
  }
  const std::vector<Lessee>& next_requests() const { return may_go_; }
  virtual bool may_go(Lessee lessee) const = 0;
  virtual bool open(Lessee lessee, DeviceId device) const = 0;
  virtual void placed(Lessee lessee, DeviceId device) = 0;

  // Looks at all devices and all who wait. True where who may go where has changed since it was said last, or a device
  // is to be taken back: the scheduler and the dispatch of all devices are to decide then.
  virtual bool plan(TimePoint now) = 0;
  // As Dispatch, of one device.
  virtual void decide(DeviceId device, TimePoint now, std::vector<LeaseOrder>& out) = 0;
  virtual std::optional<TimePoint> next(DeviceId device, TimePoint now) const = 0;
  // None where nothing is revoked.
  virtual std::optional<RevocationTime> revocation(DeviceId device) const = 0;

 protected:
  static constexpr size_t kMoreTries = 16;  // requests that are tried behind ones that may wait for memory

  explicit DeadlinePolicy(ModelState state) : state_(std::move(state)) {}
  const ModelState& state() const { return state_; }

  ModelState state_;
  std::vector<Lessee> may_go_;  // of all requests without a device, as of the last plan()
};

}  // namespace heddle::policy
