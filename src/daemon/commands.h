#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>

#include "daemon/descriptions.h"
#include "daemon/sessions.h"
#include "daemon/workers.h"

namespace heddle::daemon {

// The `heddle` command's requests: JSON in, JSON out, {"error": text} where something is wrong. Its words stand in
// README.md.
class Commands {
 public:
  struct Control {
    std::function<void()> shut_down;
    std::function<Status(const std::string& policy)> set_policy;
    std::function<uint32_t()> restarts;  // of heddled, within the life of its vault's deposits
  };
  struct Answer {
    protocol::Reply message;
    Fd memory;  // where the text is longer than a packet
  };

  Commands(Shared& shared, Sessions& sessions, Tasks& tasks, const Executor& executor, Workers& workers,
           const Leases& leases, Control control);

  // `jobs`: those that this connection keeps alive.
  Answer answer(const protocol::Command& command, const protocol::PeerCredentials& peer, Connection& connection,
                std::set<JobId>& jobs);

 private:
  struct Asker {
    const protocol::PeerCredentials& peer;
    Connection& connection;
    std::set<JobId>& jobs;
    bool may_see(uid_t owner) const { return peer.uid == 0 || peer.uid == owner; }
  };
  using Json = nlohmann::json;

  Result<Json> dispatch(const Json& request, Asker& asker);
  Result<Json> status(const Json& request, Asker& asker);
  Result<Json> devices(const Json& request, Asker& asker);
  Result<Json> ps(const Json& request, Asker& asker);
  Result<Json> policies(const Json& request, Asker& asker);
  Result<Json> job_open(const Json& request, Asker& asker);
  Result<Json> job(const Json& request, Asker& asker);
  Result<Json> cancel(const Json& request, Asker& asker);
  Result<Json> suspend(const Json& request, Asker& asker);
  Result<Json> resume(const Json& request, Asker& asker);
  Result<Json> trace(const Json& request, Asker& asker);
  Result<Json> shut_down(const Json& request, Asker& asker);
  Result<Json> set_policy(const Json& request, Asker& asker);

  static constexpr size_t kPsPage = 32;  // sessions in one answer, which is to take no more than a millisecond or two
  static Result<uint64_t> number_in(const Json& request, const char* key);
  Json itself() const;
  Json swap_space() const;
  Json suspension(const Job& job) const;
  Json device_list(const Descriptions& describe) const;
  Descriptions descriptions_for(const Asker& asker) const;
  Result<Job*> find_job(const Json& request, const Asker& asker);

  Shared& shared_;
  Sessions& sessions_;
  Tasks& tasks_;
  const Executor& executor_;
  Workers& workers_;
  const Leases& leases_;
  Control control_;
  TimePoint started_;
};

}  // namespace heddle::daemon
