#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "policy/deadline/deadline_policy.h"
#include "policy/dispatch/table.h"
#include "policy/dispatch/test_device.h"

namespace heddle::policy {

// Devices of one model under a deadline policy, driven by hand.
class Devices {
 public:
  Devices(const char* policy, size_t count)
      : deadline_((*find_dispatch(policy))->deadline(ids(count))), count_(count) {}

  static Tenant tenant(JobClass kind, const std::string& app = "app") { return {.job = {1}, .app = app, .kind = kind}; }
  void request(uint64_t session, double when, const std::string& app = "app") {
    request(session, when, tenant(JobClass::kUserFacing, app));
  }
  void request(uint64_t session, double when, const Tenant& tenant) {
    deadline_->state().waits(lessee(session), tenant, moment(when));
  }
  void batch_waits(uint64_t session, double when) {
    deadline_->state().waits(lessee(session), tenant(JobClass::kBatch), moment(when));
  }
  // A lessee that has the device; its worker is there, too; it has a burst for it.
  void joins(uint64_t session, uint64_t device, JobClass kind, double when) {
    deadline_->state().joined({device}, lessee(session), tenant(kind), moment(when));
  }
  void ready(uint64_t session, double when) { deadline_->state().ready(lessee(session), moment(when)); }
  void begins(uint64_t session, double when) { deadline_->state().pending(lessee(session), moment(when)); }
  void works(uint64_t session, uint64_t device, JobClass kind, double when, const std::string& app = "app") {
    deadline_->state().joined({device}, lessee(session), tenant(kind, app), moment(when));
    deadline_->state().pending(lessee(session), moment(when));
  }
  void batch(uint64_t session, uint64_t device, double when) { works(session, device, JobClass::kBatch, when); }
  void ends(uint64_t session, uint64_t device, double when, double busy = 0) {
    deadline_->state().served(lessee(session), {.busy = ms(busy)});
    deadline_->state().drained(lessee(session), moment(when));
    deadline_->state().left({device}, lessee(session), moment(when));
  }
  bool plan(double when) { return deadline_->plan(moment(when)); }
  // As the scheduler does it: those that may go, each to the first device that is open to it.
  std::vector<std::string> place(double when, std::initializer_list<uint64_t> sessions) {
    std::vector<std::string> placed;
    deadline_->plan(moment(when));
    for (const uint64_t session : sessions) {
      for (uint64_t device = 0; device < count_ && deadline_->may_go(lessee(session)); ++device) {
        if (!deadline_->open(lessee(session), {device})) continue;
        placed.push_back(std::to_string(session) + " on " + std::to_string(device));
        deadline_->placed(lessee(session), {device});
        break;
      }
    }
    return placed;
  }
  // Of the last few requests of the application, each so long: what is known of it.
  void known(const std::string& app, double busy) {
    for (int i = 0; i < 8; ++i) {
      works(900, 0, JobClass::kUserFacing, 0, app);
      ends(900, 0, 0, busy);
    }
  }
  void in_flight(uint64_t session, double drain, double uncommitted, bool exposed = false) {
    deadline_->state().served(lessee(session),
                              {.drain = ms(drain), .uncommitted = ms(uncommitted), .exposed = exposed});
  }
  void not_terminated(uint64_t session, uint64_t device, double when) {
    deadline_->state().not_terminated({device}, lessee(session), moment(when));
    in_flight(session, 0, 0, true);
  }
  const ModelState& state() { return deadline_->state(); }
  RevocationTime revocation(uint64_t device) { return *deadline_->revocation({device}); }
  void returned(uint64_t session, uint64_t device, double when) {
    deadline_->state().returned({device}, lessee(session), moment(when));
  }
  // "0: lend 1", "1: withdraw 2", "1: terminate 2"
  std::vector<std::string> decide(double when) {
    std::vector<std::string> texts;
    for (uint64_t device = 0; device < count_; ++device) {
      std::vector<LeaseOrder> orders;
      deadline_->decide({device}, moment(when), orders);
      for (const LeaseOrder& order : orders) {
        const auto* lend = std::get_if<Lend>(&order);
        const auto* withdraw = std::get_if<Withdraw>(&order);
        const Lessee whose = lend ? lend->to : withdraw->from;
        texts.push_back(std::to_string(device) + ": " +
                        (lend                  ? "lend "
                         : withdraw->terminate ? "terminate "
                                               : "withdraw ") +
                        std::to_string(whose.session.value));
      }
    }
    return texts;
  }
  std::optional<TimePoint> next(uint64_t device, double when) { return deadline_->next({device}, moment(when)); }

 private:
  static std::vector<DeviceId> ids(size_t count) {
    std::vector<DeviceId> ids;
    for (uint64_t id = 0; id < count; ++id) ids.push_back({id});
    return ids;
  }
  std::unique_ptr<DeadlinePolicy> deadline_;
  uint64_t count_;
};

}  // namespace heddle::policy
