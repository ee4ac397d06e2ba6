#pragma once

#include <nlohmann/json_fwd.hpp>

#include "daemon/registry.h"

namespace heddle::daemon {

// What a job asks for of a device, among the keys of job_open: "weight" (1), "share" (0), "limit" (1), "app" (""),
// "class" ("batch"), "slo_ns" (200 ms).
// kInvalidArgument names the key and the value.
Result<policy::Tenant> read_tenant(const nlohmann::json& request);
// As `heddle ps --json` shows it.
void describe_tenant(const policy::Tenant& tenant, nlohmann::json& job);
// Likewise what became of a user-facing job's requests.
void describe_requests(const Job& of, nlohmann::json& job);
// And of its leases, or of a device's, that were taken back in the middle of a burst; null of none, and no refusal.
nlohmann::json revocations_json(const policy::Sla& sla);

// Whether user `uid` may have one more such job. kLimitExceeded names the limit, what it allows and what was asked for.
Status may_have(const policy::Tenant& tenant, const Limits& limits, const Registry& registry, uid_t uid);

// As dispatch and placement policies see the job by this session: an app without a name is the session's program.
policy::Tenant tenant_of(const Job& job, const Session& session);

}  // namespace heddle::daemon
