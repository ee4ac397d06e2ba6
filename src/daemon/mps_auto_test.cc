// MPS for those whose work can be run again: they share their faults, and outlive them; whoever has other work does it
// outside of MPS, where no other program's fault ends it.

#include "daemon/proc_file.h"
#include "daemon/testing/mps_fixture.h"
#include "daemon/warm_target.h"

namespace heddle::daemon::testing {
namespace {

using protocol::RecordType;
using ::testing::HasSubstr;

class MpsAutoTest : public MpsGpuTest {
 protected:
  static constexpr Bytes kMemory{4 * kMiB};

  void start_auto(const std::string& more = "") { start_gpu(more, "auto"); }
  // The program's next record could not be run again.
  static uint64_t needs_apart(TestClient& client) {
    client.record(RecordType::kLimit, kNotRepeatable);
    return client.writer().last_sequence();
  }
  void goes_on_apart(TestClient& client) {
    const uint64_t kept = needs_apart(client);
    EXPECT_TRUE(client.wait_completed(kept)) << client.error_text();
    EXPECT_FALSE(is_mps_client(worker_of(client)));
  }
  // Its worker, which is stopped because MPS starts anew behind `origin`'s fault, and does not come back by itself.
  pid_t held_back(TestClient& apart, TestClient& origin) {
    goes_on_apart(apart);
    const pid_t worker = worker_of(apart);
    mps_.go_away();
    fault(origin, kRepeatable);
    house_->wait_for("ps", [&](const Json&) { return is_stopped(worker); });
    return worker;
  }
  Json task_of(const TestClient& client) {
    const Json ps = *house_->ask({{"command", "ps"}, {"from", client.welcome().session}});
    for (const Json& session : ps["sessions"]) {
      if (session["session"] == client.welcome().session && !session["tasks"].empty()) return session["tasks"][0];
    }
    return {};
  }
  Json gpu() { return (*house_->ask({{"command", "devices"}}))["devices"][0]; }
};

TEST_F(MpsAutoTest, WhoseWorkCanBeRunAgainStaysUnderMps) {
  ASSERT_NO_FATAL_FAILURE(start_auto());
  TestClient client = running(kMemory);
  expect_served(client);
  EXPECT_TRUE(is_mps_client(worker_of(client)));
  EXPECT_EQ(task_of(client)["state"], "running");
  EXPECT_FALSE(task_of(client).contains("apart"));
  EXPECT_EQ(gpu()["mps"], "auto");
}

TEST_F(MpsAutoTest, WhoHasOtherWorkGoesOnOutsideOfIt) {
  ASSERT_NO_FATAL_FAILURE(start_auto());
  TestClient client = running(kMemory), other = running(kMemory);
  ASSERT_NO_FATAL_FAILURE(goes_on_apart(client));
  expect_served(client);
  EXPECT_EQ(task_of(client)["apart"], true) << task_of(client);
  EXPECT_TRUE(is_mps_client(worker_of(other)));
}

TEST_F(MpsAutoTest, NoOtherProgramsFaultReachesItThere) {
  ASSERT_NO_FATAL_FAILURE(start_auto());
  TestClient apart = running(kMemory), origin = running(kMemory), idle = running(kMemory);
  ASSERT_NO_FATAL_FAILURE(goes_on_apart(apart));
  const pid_t worker = worker_of(apart);
  compute(apart, kForGood);
  fault(origin, kRepeatable);
  EXPECT_TRUE(origin.wait_fault(700));
  expect_served(idle);
  apart.host_calls_return();
  expect_served(apart);
  EXPECT_EQ(worker_of(apart), worker);
}

TEST_F(MpsAutoTest, ThereItIsHeldBackForAMomentWhileMpsStarts) {
  ASSERT_NO_FATAL_FAILURE(start_auto());
  TestClient apart = running(kMemory), origin = running(kMemory);
  const pid_t worker = held_back(apart, origin);
  house_->wait_for("ps", [&](const Json&) { return !is_stopped(worker); });
  expect_served(apart);
  EXPECT_EQ(worker_of(apart), worker);
  mps_.come_back();
  expect_gpu_serves();
}

TEST_F(MpsAutoTest, HeddledDiesWhileItIsHeldBack) {
  ASSERT_NO_FATAL_FAILURE(start_auto());
  TestClient apart = running(kMemory), origin = running(kMemory);
  const pid_t worker = held_back(apart, origin);
  house_->kill(house_->heddled());
  mps_.come_back();
  expect_served(apart);
  EXPECT_EQ(worker_of(apart), worker);
}

TEST_F(MpsAutoTest, WhoComesWhereMpsIsFullIsServedOutsideOfIt) {
  ASSERT_NO_FATAL_FAILURE(start_auto());
  std::vector<TestClient> clients;
  for (uint32_t i = 0; i < kMostMpsClients; ++i) clients.push_back(running(kMemory));
  EXPECT_TRUE(is_mps_client(task_of(clients.back()).value("worker_pid", 0)));
  TestClient next = running(kMemory);
  expect_served(next);
  EXPECT_FALSE(is_mps_client(task_of(next).value("worker_pid", 0)));
  EXPECT_EQ(task_of(next)["apart"], true);
}

TEST_F(MpsAutoTest, ItStaysThereForItsNextTask) {
  ASSERT_NO_FATAL_FAILURE(start_auto());
  TestClient client = running(kMemory);
  ASSERT_NO_FATAL_FAILURE(goes_on_apart(client));
  const pid_t worker = worker_of(client);
  finish(client);
  ASSERT_TRUE(client.declare(2, client.at(0), kMemory));
  ASSERT_TRUE(client.begin(2));
  ASSERT_TRUE(client.wait_binding(protocol::Binding::kBound)) << client.error_text();
  expect_served(client);
  EXPECT_EQ(worker_of(client), worker);
}

TEST_F(MpsAutoTest, HeddledDiesMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(start_auto());
  TestClient client = running(kMemory);
  const pid_t before = worker_of(client);
  house_->kill(house_->heddled());
  const uint64_t kept = needs_apart(client);
  EXPECT_TRUE(client.wait_completed(kept)) << client.error_text();
  EXPECT_NE(worker_of(client), before);
  EXPECT_FALSE(is_mps_client(worker_of(client)));
  house_->kill(house_->heddled());
  expect_served(client);
  EXPECT_FALSE(is_mps_client(worker_of(client))) << "it is not called back";
}

TEST_F(MpsAutoTest, OneStandsReadyForWhoLeaves) {
  ASSERT_NO_FATAL_FAILURE(start_auto());
  TestClient client = running(kMemory);
  wait_until_ready(1);
  const std::set<pid_t> ready = outside_mps();
  ASSERT_NO_FATAL_FAILURE(goes_on_apart(client));
  EXPECT_TRUE(ready.contains(worker_of(client)));
}

TEST_F(MpsAutoTest, WhereMpsDoesNotStartThereAreTimeSlices) {
  mps_.go_away();
  ASSERT_NO_FATAL_FAILURE(start("[[gpu]]\nmemory = \"256M\"\ncontext_memory = \"0\"\n"));
  EXPECT_EQ(gpu()["mps"], "off");
  TestClient client = running(kMemory);
  expect_served(client);
  EXPECT_FALSE(is_mps_client(worker_of(client)));
}

TEST_F(MpsAutoTest, WhereNothingIsProtectedThereAreTimeSlices) {
  ASSERT_NO_FATAL_FAILURE(
      start("[[gpu]]\nmps = \"auto\"\nmemory = \"64M\"\ncontext_memory = \"0\"\n", "[durability]\nlevel = \"off\"\n"));
  EXPECT_EQ(gpu()["mps"], "off");
  TestClient client = running(kMemory);
  EXPECT_FALSE(is_mps_client(worker_of(client)));
  expect_served(client);
}

}  // namespace
}  // namespace heddle::daemon::testing
