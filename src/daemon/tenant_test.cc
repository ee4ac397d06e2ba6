#include "daemon/tenant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/device_share.h"

namespace heddle::daemon {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

constexpr uid_t kTenantUser = 1000;

Registry with_shares(const std::vector<double>& shares) {
  Registry registry;
  for (const double share : shares) {
    Job job;
    job.id = JobId{registry.jobs.size() + 1};
    job.uid = kTenantUser;
    job.tenant.request = share;
    registry.jobs.emplace(job.id, std::move(job));
  }
  return registry;
}

TEST(ReadTenant, TakesWhatIsThereAndLeavesTheRestAsItIs) {
  const auto none = read_tenant(Json{{"name", "a"}});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->weight, 1);
  EXPECT_EQ(none->request, 0);
  EXPECT_EQ(none->limit, 1);
  EXPECT_EQ(none->app, "");
  const auto all = read_tenant(Json{{"weight", 2}, {"share", 0.3}, {"limit", 0.6}, {"app", "bfs"}});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->weight, 2);
  EXPECT_EQ(all->request, 0.3);
  EXPECT_EQ(all->limit, 0.6);
  EXPECT_EQ(all->app, "bfs");
}

TEST(ReadTenant, AUserFacingJobHasAnSlo) {
  EXPECT_EQ(read_tenant(Json::object())->kind, policy::JobClass::kBatch);
  const auto usual = read_tenant(Json{{"class", "user-facing"}});
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->kind, policy::JobClass::kUserFacing);
  EXPECT_EQ(usual->slo, std::chrono::milliseconds(200));
  const auto quick = read_tenant(Json{{"class", "user-facing"}, {"slo_ns", 1'000'000u}});
  ASSERT_TRUE(quick);
  EXPECT_EQ(quick->slo, std::chrono::milliseconds(1));
  Json shown;
  describe_tenant(*quick, shown);
  EXPECT_EQ(shown["class"], "user-facing");
  EXPECT_EQ(shown["slo_ns"], 1'000'000);
}

TEST(ReadTenant, TheLeastLimitIsOne) {
  const auto tenant = read_tenant(Json{{"limit", 0.01}});
  ASSERT_TRUE(tenant);
  EXPECT_EQ(tenant->limit, kLeastLimit);
}

TEST(ReadTenant, RefusalsNameTheKeyAndTheValue) {
  const std::pair<Json, const char*> cases[] = {
      {{{"weight", 0}}, "weight 0:"},
      {{{"weight", -1}}, "weight -1:"},
      {{{"weight", "2"}}, "\"weight\" must be a number"},
      {{{"share", 1.5}}, "share 1.5:"},
      {{{"share", -0.1}}, "share -0.1:"},
      {{{"limit", 0}}, "limit 0:"},
      {{{"limit", 2}}, "limit 2:"},
      {{{"limit", 0.005}}, "limit 0.005: it is a part of the device, from 0.01 to 1"},
      {{{"share", 0.5}, {"limit", 0.25}}, "share 0.5 is above limit 0.25"},
      {{{"class", "urgent"}}, "class 'urgent': a job is user-facing or batch"},
      {{{"class", 3}}, "\"class\" must be a text"},
      {{{"slo_ns", 200'000'000u}}, "slo 200 ms: a batch job has no requests"},
      {{{"class", "user-facing"}, {"slo_ns", 999'999u}}, "a request may take from 1 ms to"},
      {{{"class", "user-facing"}, {"slo_ns", 3'600'000'000'001u}}, "a request may take from 1 ms to"},
      {{{"class", "user-facing"}, {"slo_ns", UINT64_MAX}}, "a request may take from 1 ms to"},
      {{{"class", "user-facing"}, {"slo_ns", -5}}, "\"slo_ns\" must be a number"},
      {{{"app", 3}}, "\"app\" must be a text"},
      {{{"app", std::string(64, 'x')}}, "64 characters, of at most 63"},
  };
  for (const auto& [request, text] : cases) {
    const auto tenant = read_tenant(request);
    ASSERT_FALSE(tenant) << request;
    EXPECT_EQ(tenant.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(tenant.error().text, HasSubstr(text));
  }
}

TEST(MayHave, RefusalsNameTheLimitAndWhatWasAskedFor) {
  const Limits limits{.weight_of_job = 10, .share_of_job = 0.5, .share_per_user = 0.8};
  const auto text_of = [&](const policy::Tenant& tenant, const Registry& registry) {
    const Status status = may_have(tenant, limits, registry, kTenantUser);
    EXPECT_TRUE(status || status.error().code == ErrorCode::kLimitExceeded);
    return status ? std::string() : status.error().text;
  };
  EXPECT_EQ(text_of({.weight = 10, .request = 0.5}, {}), "");
  EXPECT_EQ(text_of({.weight = 11}, {}), "user 1000 asks for a job of weight 11, and limits.weight_of_job allows 10");
  EXPECT_EQ(text_of({.request = 0.6}, {}),
            "user 1000 asks for a job with share 0.6, and limits.share_of_job allows 0.5");
  EXPECT_EQ(text_of({.request = 0.3}, with_shares({0.5})), "");
  EXPECT_EQ(text_of({.request = 0.4}, with_shares({0.5})),
            "user 1000 has jobs with shares of 0.5 and asks for one with 0.4, and limits.share_per_user allows 0.8");
  EXPECT_EQ(text_of({}, with_shares({0.9})), "");
  EXPECT_TRUE(may_have({.request = 0.4}, limits, with_shares({0.5}), kTenantUser + 1));
  EXPECT_TRUE(may_have({.request = 1}, {}, with_shares({1, 1}), kTenantUser));
}

TEST(MayHave, UserFacingJobsCanBeRefused) {
  const policy::Tenant asked{.kind = policy::JobClass::kUserFacing};
  EXPECT_TRUE(may_have(asked, {}, {}, kTenantUser));
  const Status refused = may_have(asked, Limits{.user_facing = false}, {}, kTenantUser);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "user 1000 asks for a user-facing job, and limits.user_facing allows none");
  EXPECT_TRUE(may_have({}, Limits{.user_facing = false}, {}, kTenantUser));
}

TEST(TenantOf, IsKnownByItsAppOrByTheProgramsFileName) {
  Job job;
  job.id = JobId{7};
  job.tenant = {.weight = 2, .request = 0.25, .limit = 0.5};
  Session session;
  session.program = "/opt/bin/train";
  EXPECT_EQ(tenant_of(job, session).app, "train");
  EXPECT_EQ(tenant_of(job, session).job, JobId{7});
  EXPECT_EQ(tenant_of(job, session).weight, 2);
  job.tenant.app = "resnet";
  EXPECT_EQ(tenant_of(job, session).app, "resnet");
}

}  // namespace
}  // namespace heddle::daemon
