#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "policy/ledger.h"
#include "policy/placement/placement.h"

namespace heddle::policy {

// The ledger and the policy's own state, moved together: what is, as opposed to what waits. A copy is a
// place to try out what would be.
class PlacementState {
 public:
  PlacementState(std::unique_ptr<Placement> placement, std::vector<DeviceSpec> devices);
  PlacementState(const PlacementState& other);
  PlacementState& operator=(const PlacementState&) = delete;

  const Pool& pool() const { return ledger_.pool(); }
  const Ledger& ledger() const { return ledger_; }
  const Placement& placement() const { return *placement_; }
  bool assigns_jobs() const { return placement_->scope() == Scope::kSession; }

  void open_session(SessionId session, JobId job, const std::string& app = {}, TimePoint now = {});
  // All that the session held returns; with the job's last session its assignments end too. Without a time only what
  // would be is tried out.
  void close_session(SessionId session, std::optional<TimePoint> now = {});
  // What the session has used of the device since that was said last.
  void served(SessionId session, DeviceId device, const Service& since_last);
  // What the session's program has computed itself since that was said last.
  void computed(SessionId session, Duration since_last) { placement_->computed(sessions_.at(session), since_last); }
  void remember(const KnownApp& app) { placement_->remember(app); }
  const std::map<SessionId, JobId>& sessions() const { return sessions_; }

  // Whether others may be waiting for something that the session, or its job, has.
  bool holds(SessionId session) const;
  bool holds_on(SessionId session, DeviceId device) const;

  void set_outside(DeviceId device, Bytes used) { ledger_.set_outside(device, used); }

  bool can_extend(SessionId session, TaskId task, Bytes more) const;

  // Gives the job its place on the device, without a worker yet.
  void take_place(const Request& request, DeviceId device);
  void assign(const Request& request, DeviceId device);
  void begin(const Request& request, DeviceId device);  // assigns as well, under a policy that assigns jobs
  void extend(SessionId session, TaskId task, Bytes more) { ledger_.extend(session, task, more); }
  Bytes shrink(SessionId session, TaskId task, Bytes less) { return ledger_.shrink(session, task, less); }
  void put_on_host(SessionId session, TaskId task, Bytes more) { ledger_.put_on_host(session, task, more); }
  Bytes take_from_host(SessionId session, TaskId task, Bytes less) {
    return ledger_.take_from_host(session, task, less);
  }
  void set_compute(SessionId session, TaskId task, const ComputeNeed& need);
  void end(SessionId session, TaskId task);

 private:
  struct OpenJob {
    uint32_t sessions = 0;
    TimePoint since{};
  };
  Ledger ledger_;
  std::unique_ptr<Placement> placement_;
  std::map<SessionId, JobId> sessions_;
  std::map<JobId, OpenJob> open_jobs_;
  std::set<std::pair<JobId, DeviceId>> assignments_;
};

}  // namespace heddle::policy
