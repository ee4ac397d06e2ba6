#include "policy/deadline/family.h"

namespace heddle::policy {
namespace {

// One device of a deadline policy, which is shared because all devices of a model have one.
class DeadlineDispatch : public Dispatch {
 public:
  DeadlineDispatch(std::shared_ptr<DeadlinePolicy> deadline, DeviceId device)
      : deadline_(std::move(deadline)), device_(device) {}

  bool spans_devices() const override { return true; }
  void joined(Lessee lessee, const Tenant& tenant, TimePoint now) override {
    deadline_->state().joined(device_, lessee, tenant, now);
  }
  void ready(Lessee lessee, TimePoint now) override { deadline_->state().ready(lessee, now); }
  void left(Lessee lessee, TimePoint now) override { deadline_->state().left(device_, lessee, now); }
  void pending(Lessee lessee, TimePoint now) override { deadline_->state().pending(lessee, now); }
  void drained(Lessee lessee, TimePoint now) override { deadline_->state().drained(lessee, now); }
  void served(Lessee lessee, const Service& since_last, TimePoint /*now*/) override {
    deadline_->state().served(lessee, since_last);
  }
  void returned(Lessee lessee, TimePoint now) override { deadline_->state().returned(device_, lessee, now); }
  void not_terminated(Lessee lessee, TimePoint now) override {
    deadline_->state().not_terminated(device_, lessee, now);
  }
  void decide(TimePoint now, std::vector<LeaseOrder>& out) override { deadline_->decide(device_, now, out); }
  std::optional<TimePoint> next(TimePoint now) const override { return deadline_->next(device_, now); }

 private:
  std::shared_ptr<DeadlinePolicy> deadline_;
  DeviceId device_;
};

}  // namespace

std::unique_ptr<Dispatch> dispatch_of(std::shared_ptr<DeadlinePolicy> deadline, DeviceId device) {
  return std::make_unique<DeadlineDispatch>(std::move(deadline), device);
}

DeadlineFamily::DeadlineFamily(Make make, const std::vector<DeviceSpec>& devices) {
  std::map<std::string, std::vector<DeviceId>> by_model;
  for (const DeviceSpec& device : devices) by_model[device.model].push_back(device.id);
  for (const auto& [model, ids] : by_model) models_[model] = make(ids);
  for (const DeviceSpec& device : devices) devices_.push_back(models_.at(device.model));
}

std::unique_ptr<Dispatch> DeadlineFamily::dispatch(DeviceId device) const {
  return dispatch_of(devices_[device.value], device);
}

std::optional<RevocationTime> DeadlineFamily::revocation(DeviceId device) const {
  return devices_[device.value]->revocation(device);
}

void DeadlineFamily::waits(const std::string& model, Lessee lessee, const Tenant& tenant, TimePoint now) {
  const auto found = models_.find(model);
  if (found == models_.end()) return;
  waiting_[lessee] = found->second.get();
  found->second->state().waits(lessee, tenant, now);
}

void DeadlineFamily::waits_no_longer(Lessee lessee) {
  DeadlinePolicy* const deadline = waits_at(lessee);
  if (!deadline) return;
  deadline->state().waits_no_longer(lessee);
  waiting_.erase(lessee);
}

bool DeadlineFamily::plan(TimePoint now) {
  bool changed = false;
  for (const auto& [model, deadline] : models_) changed |= deadline->plan(now);
  if (changed) ++version_;
  return changed;
}

DeadlinePolicy* DeadlineFamily::waits_at(Lessee lessee) const {
  const auto found = waiting_.find(lessee);
  return found == waiting_.end() ? nullptr : found->second;
}

bool DeadlineFamily::is_special(Lessee lessee) const {
  const DeadlinePolicy* deadline = waits_at(lessee);
  return deadline && deadline->is_special(lessee);
}

std::vector<Lessee> DeadlineFamily::next() const {
  std::vector<Lessee> all;
  for (const auto& [model, deadline] : models_) {
    const auto& next = deadline->next_requests();
    all.insert(all.end(), next.begin(), next.end());
  }
  return all;
}

// Of whom nothing was said: the scheduler alone decides.
bool DeadlineFamily::may_go(Lessee lessee) const {
  const DeadlinePolicy* deadline = waits_at(lessee);
  return !deadline || deadline->may_go(lessee);
}

bool DeadlineFamily::open(Lessee lessee, DeviceId device) const {
  const DeadlinePolicy* deadline = waits_at(lessee);
  return !deadline || deadline->open(lessee, device);
}

void DeadlineFamily::placed(Lessee lessee, DeviceId device) {
  if (DeadlinePolicy* deadline = waits_at(lessee)) deadline->placed(lessee, device);
  waiting_.erase(lessee);
}

}  // namespace heddle::policy
