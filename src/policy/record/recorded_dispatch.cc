#include "policy/record/recorded_dispatch.h"

#include "policy/record/entry.h"

namespace heddle::policy {
namespace {

class RecordedDispatch : public Dispatch {
 public:
  RecordedDispatch(std::unique_ptr<Dispatch> policy, DeviceId device, InputLog& log)
      : policy_(std::move(policy)), device_(device), log_(log) {}

  void joined(Lessee lessee, const Tenant& tenant, TimePoint now) override {
    record(now, "joined", lessee, tenant);
    policy_->joined(lessee, tenant, now);
  }
  void left(Lessee lessee, TimePoint now) override {
    record(now, "left", lessee);
    policy_->left(lessee, now);
  }
  void pending(Lessee lessee, TimePoint now) override {
    record(now, "pending", lessee);
    policy_->pending(lessee, now);
  }
  void drained(Lessee lessee, TimePoint now) override {
    record(now, "drained", lessee);
    policy_->drained(lessee, now);
  }
  void served(Lessee lessee, const Service& since_last, TimePoint now) override {
    record(now, "served", lessee, since_last);
    policy_->served(lessee, since_last, now);
  }
  void returned(Lessee lessee, TimePoint now) override {
    record(now, "returned", lessee);
    policy_->returned(lessee, now);
  }
  void decide(TimePoint now, std::vector<LeaseOrder>& out) override {
    record(now, "turn");
    log_.flush();  // a decision that ends the process is the one to be looked into
    const size_t before = out.size();
    policy_->decide(now, out);
    for (size_t i = before; i < out.size(); ++i) {
      if (const auto* lend = std::get_if<Lend>(&out[i])) record(now, "=lend", *lend);
      if (const auto* withdraw = std::get_if<Withdraw>(&out[i])) record(now, "=withdraw", *withdraw);
    }
    log_.flush();
  }
  // A policy may forget what has become old when it is asked: so that it was asked is written, too.
  std::optional<TimePoint> next(TimePoint now) const override {
    record(now, "next");
    const auto next = policy_->next(now);
    record(now, "=next", next.value_or(TimePoint::max()));
    return next;
  }

 private:
  template <class... Values>
  void record(TimePoint at, std::string_view event, const Values&... values) const {
    log_.write(EntryWriter(at, event)(device_, values...).line());
  }

  std::unique_ptr<Dispatch> policy_;
  const DeviceId device_;
  InputLog& log_;
};

}  // namespace

std::unique_ptr<Dispatch> recorded(std::unique_ptr<Dispatch> policy, const std::string& name, DeviceId device,
                                   InputLog* log) {
  if (!log || !policy->exclusive()) return policy;
  log->write(EntryWriter({}, "dispatch")(device, name).line());
  return std::make_unique<RecordedDispatch>(std::move(policy), device, *log);
}

}  // namespace heddle::policy
