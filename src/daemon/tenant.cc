#include "daemon/tenant.h"

#include <nlohmann/json.hpp>

#include "core/device_share.h"
#include "core/job_class.h"
#include "daemon/notes.h"

namespace heddle::daemon {
namespace {

using Json = nlohmann::json;

Status read(const Json& request, const char* key, double& value) {
  const auto found = request.find(key);
  if (found == request.end()) return {};
  if (!found->is_number()) return fail(ErrorCode::kInvalidArgument, "\"%s\" must be a number", key);
  value = found->get<double>();
  return {};
}

Status read_class(const Json& request, policy::Tenant& tenant) {
  std::string name(kBatch);
  std::optional<Duration> slo;
  if (const auto found = request.find("class"); found != request.end()) {
    if (!found->is_string()) return fail(ErrorCode::kInvalidArgument, "\"class\" must be a text");
    name = found->get<std::string>();
  }
  if (const auto found = request.find("slo_ns"); found != request.end()) {
    if (!found->is_number_unsigned()) return fail(ErrorCode::kInvalidArgument, "\"slo_ns\" must be a number");
    slo = Duration(static_cast<int64_t>(std::min<uint64_t>(found->get<uint64_t>(), INT64_MAX)));
  }
  if (const auto wrong = wrong_class(name, slo)) return fail(ErrorCode::kInvalidArgument, "%s", wrong->text.c_str());
  if (name == kUserFacing) tenant.kind = policy::JobClass::kUserFacing;
  tenant.slo = slo.value_or(tenant.slo);
  return {};
}

}  // namespace

Result<policy::Tenant> read_tenant(const Json& request) {
  policy::Tenant tenant;
  HEDDLE_TRY(read(request, "weight", tenant.weight));
  HEDDLE_TRY(read(request, "share", tenant.request));
  HEDDLE_TRY(read(request, "limit", tenant.limit));
  if (const auto wrong = wrong_share(tenant.weight, tenant.request, tenant.limit))
    return fail(ErrorCode::kInvalidArgument, "%s", wrong->text.c_str());
  HEDDLE_TRY(read_class(request, tenant));
  const auto app = request.find("app");
  if (app == request.end()) return tenant;
  if (!app->is_string()) return fail(ErrorCode::kInvalidArgument, "\"app\" must be a text");
  tenant.app = app->get<std::string>();
  constexpr size_t kLongest = sizeof JobNote::app - 1;
  if (tenant.app.size() > kLongest)
    return fail(ErrorCode::kInvalidArgument, "app '%.20s...' has %zu characters, of at most %zu", tenant.app.c_str(),
                tenant.app.size(), kLongest);
  return tenant;
}

void describe_tenant(const policy::Tenant& tenant, Json& job) {
  job["weight"] = tenant.weight;
  job["share"] = tenant.request;
  job["limit"] = tenant.limit;
  job["app"] = tenant.app;
  const bool user_facing = tenant.kind == policy::JobClass::kUserFacing;
  job["class"] = user_facing ? kUserFacing : kBatch;
  if (user_facing) job["slo_ns"] = tenant.slo.count();
}

void describe_requests(const Job& of, Json& job) {
  if (of.tenant.kind != policy::JobClass::kUserFacing) return;
  const policy::Percentiles& times = of.sla.times();
  job["requests"] = {{"count", of.sla.requests()},       {"met", of.sla.met()},
                     {"missed", of.sla.missed()},        {"p50_ns", times.at(0.5).count()},
                     {"p95_ns", times.at(0.95).count()}, {"p99_ns", times.at(0.99).count()}};
}

Json revocations_json(const policy::Sla& sla) {
  if (sla.revocations() == 0 && sla.terminations_refused() == 0) return {};
  const policy::Percentiles &all = sla.revocation_latencies(), &terminated = sla.termination_latencies();
  return {{"count", sla.revocations()},
          {"p50_ns", all.at(0.5).count()},
          {"p99_ns", all.at(0.99).count()},
          {"terminated", sla.terminations()},
          {"terminated_p50_ns", terminated.at(0.5).count()},
          {"terminated_p99_ns", terminated.at(0.99).count()},
          {"not_terminated", sla.terminations_refused()},
          {"lost_ns", sla.lost().count()}};
}

Status may_have(const policy::Tenant& tenant, const Limits& limits, const Registry& registry, uid_t uid) {
  if (tenant.weight > limits.weight_of_job)
    return fail(ErrorCode::kLimitExceeded, "user %u asks for a job of weight %g, and limits.weight_of_job allows %g",
                uid, tenant.weight, limits.weight_of_job);
  if (tenant.request > limits.share_of_job)
    return fail(ErrorCode::kLimitExceeded, "user %u asks for a job with share %g, and limits.share_of_job allows %g",
                uid, tenant.request, limits.share_of_job);
  if (tenant.kind == policy::JobClass::kUserFacing && !limits.user_facing)
    return fail(ErrorCode::kLimitExceeded, "user %u asks for a user-facing job, and limits.user_facing allows none",
                uid);
  if (limits.share_per_user == 0 || tenant.request == 0) return {};
  double requested = 0;
  for (const auto& [id, job] : registry.jobs) requested += job.uid == uid ? job.tenant.request : 0;
  constexpr double kRounding = 1e-9;  // 0.1 + 0.2 is 0.3
  if (requested + tenant.request > limits.share_per_user + kRounding)
    return fail(ErrorCode::kLimitExceeded,
                "user %u has jobs with shares of %g and asks for one with %g, and limits.share_per_user allows %g", uid,
                requested, tenant.request, limits.share_per_user);
  return {};
}

policy::Tenant tenant_of(const Job& job, const Session& session) {
  policy::Tenant tenant = job.tenant;
  tenant.job = job.id;
  if (tenant.app.empty()) tenant.app = session.program.substr(session.program.find_last_of('/') + 1);
  return tenant;
}

}  // namespace heddle::daemon
