// Policies that assign a job to a device and wait for memory there, as programs see them.

#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;

class BalancerTest : public HouseholdTest {
 protected:
  Json task_of(const TestClient& client) {
    const auto ps = house_->ask({{"command", "ps"}});
    for (const Json& session : (*ps)["sessions"])
      if (session["session"] == client.welcome().session && !session["tasks"].empty()) return session["tasks"][0];
    return {};
  }
  TestClient of_job(const Json& job, Bytes memory) {
    TestClient client = opened(job["job"], job["secret"]);
    EXPECT_TRUE(client.declare(1, client.at(0), memory));
    EXPECT_TRUE(client.begin(1));
    return client;
  }
};

TEST_F(BalancerTest, AJobKeepsItsDeviceAndWaitsThereForMemory) {
  start(kTwoDevices, "policy = \"gmin\"\n");
  auto opener = protocol::connect_to(house_->socket());
  const auto first = Household::ask(*opener, {{"command", "job_open"}, {"name", "a"}});
  const auto second = Household::ask(*opener, {{"command", "job_open"}, {"name", "b"}});
  TestClient one = of_job(*first, Bytes{40 * kMiB});
  ASSERT_TRUE(one.wait_binding(Binding::kBound));
  EXPECT_EQ(task_of(one)["device"], 0);
  TestClient other = of_job(*second, Bytes{2 * kMiB});
  ASSERT_TRUE(other.wait_binding(Binding::kBound));
  EXPECT_EQ(task_of(other)["device"], 1);
  EXPECT_EQ(task_of(other)["reason"], "fewest jobs on 1 (0)");

  TestClient two = of_job(*first, Bytes{40 * kMiB});  // device 1 has the memory, and is not its job's
  ASSERT_TRUE(two.wait_binding(Binding::kWaiting));
  EXPECT_THAT(task_of(two)["reason"], ::testing::HasSubstr("the job is assigned: needs 40 MiB"));
  finish(one);
  ASSERT_TRUE(two.wait_binding(Binding::kBound));
  EXPECT_EQ(task_of(two)["device"], 0);
}

TEST_F(BalancerTest, AJobIsOnItsDeviceStillAfterARestart) {
  start(kTwoDevices, "policy = \"rtf\"\n");
  TestClient first = running(Bytes{8 * kMiB});
  const Json before = task_of(first);
  const pid_t old = house_->heddled();
  house_->kill(old);
  house_->wait_for("status", [&](const Json& answer) { return answer["pid"] != old; });
  ASSERT_TRUE(first.resume(house_->socket()));
  EXPECT_EQ(task_of(first)["device"], before["device"]);
  finish(first);
  ASSERT_TRUE(first.declare(2, first.at(8), Bytes{8 * kMiB}));
  ASSERT_TRUE(first.begin(2));
  ASSERT_TRUE(first.wait_binding(Binding::kBound));
  EXPECT_EQ(task_of(first)["reason"], "the job is assigned to device 0");
}

// Whose speed is a fifth counts for a fifth.
TEST_F(BalancerTest, DevicesCountByTheirSpeed) {
  start(R"(
[[device]]
preset = "P100"
memory = "64M"
slowdown = 5000
[[device]]
preset = "P100"
memory = "64M"
slowdown = 1000
)",
        "policy = \"gwtmin\"\n");
  auto opener = protocol::connect_to(house_->socket());
  std::vector<TestClient> clients;
  for (const char* name : {"a", "b", "c"}) {
    const auto job = Household::ask(*opener, {{"command", "job_open"}, {"name", name}});
    clients.push_back(of_job(*job, Bytes{2 * kMiB}));
    ASSERT_TRUE(clients.back().wait_binding(Binding::kBound));
    EXPECT_EQ(task_of(clients.back())["device"], 1);
  }
}

}  // namespace
}  // namespace heddle::daemon::testing
