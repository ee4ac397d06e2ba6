#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "policy/deadline/deadline_policy.h"
#include "policy/device_spec.h"
#include "policy/placement/gate.h"

namespace heddle::policy {

// A deadline policy for all devices of a pool: one object for those of each model. To whoever lends devices it is a
// dispatch policy for each device (Dispatch::spans_devices), to the scheduler it is the gate.
//
// The caller says plan() before it has the scheduler decide, which asks all who wait anew if that changed anything.
class DeadlineFamily : public PlacementGate {
 public:
  using Make = std::unique_ptr<DeadlinePolicy> (*)(const std::vector<DeviceId>&);
  DeadlineFamily(Make make, const std::vector<DeviceSpec>& devices);

  std::unique_ptr<Dispatch> dispatch(DeviceId device) const;

  std::optional<RevocationTime> revocation(DeviceId device) const;

  // A task of the lessee is asked for, and has no device yet; it ends when the gate says that it was placed and it
  // joins a device (Dispatch::joined), or with waits_no_longer(), which is also said of one that was placed without the
  // gate. Of a model that no device is: ignored.
  void waits(const std::string& model, Lessee lessee, const Tenant& tenant, TimePoint now);
  void waits_no_longer(Lessee lessee);
  // True: the gate's answers are others now, or a device is to be taken back.
  bool plan(TimePoint now);

  uint64_t version() const override { return version_; }
  bool is_special(Lessee lessee) const override;
  std::vector<Lessee> next() const override;
  bool may_go(Lessee lessee) const override;
  bool open(Lessee lessee, DeviceId device) const override;
  void placed(Lessee lessee, DeviceId device) override;

 private:
  DeadlinePolicy* waits_at(Lessee lessee) const;

  std::map<std::string, std::shared_ptr<DeadlinePolicy>> models_;  // shared with their devices' dispatch
  std::vector<std::shared_ptr<DeadlinePolicy>> devices_;           // by id
  std::map<Lessee, DeadlinePolicy*> waiting_;
  uint64_t version_ = 0;
};

// The dispatch policy of a device by itself.
std::unique_ptr<Dispatch> dispatch_of(std::shared_ptr<DeadlinePolicy> deadline, DeviceId device);

}  // namespace heddle::policy
