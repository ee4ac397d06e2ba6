// Policies that assign a job to a device and wait for memory there, as programs see them.

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>

#include "daemon/testing/fixture.h"
#include "policy/record/history_text.h"

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

// A job of "long" uses a device three times as much as one of "short": its three tasks do (fake_worker.cc).
class LearnedTest : public BalancerTest {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(directory_.data()), nullptr); }
  void TearDown() override {
    BalancerTest::TearDown();
    std::filesystem::remove_all(directory_);
  }
  std::string history() const { return directory_ + "/history"; }
  std::string policy(const char* name = "rtf") const {
    return std::string("policy = \"") + name + "\"\nhistory = \"" + history() + "\"\n";
  }

  TestClient of_app(const char* app) {
    auto opener = protocol::connect_to(house_->socket());
    const auto job = Household::ask(*opener, {{"command", "job_open"}, {"name", "a"}, {"app", app}});
    TestClient client = of_job(*job, Bytes{2 * kMiB});
    EXPECT_TRUE(client.wait_binding(Binding::kBound));
    return client;
  }
  void run(const char* app, uint64_t tasks) {
    TestClient client = of_app(app);
    for (uint64_t task = 1; task <= tasks; ++task) {
      if (task > 1) {
        ASSERT_TRUE(client.declare(task, client.at(0), Bytes{2 * kMiB}));
        ASSERT_TRUE(client.begin(task));
        ASSERT_TRUE(client.wait_binding(Binding::kBound));
      }
      client.record(protocol::RecordType::kFree, task);
      client.record(protocol::RecordType::kTaskEnd, task);
      ASSERT_TRUE(client.wait_binding(Binding::kUnbound));
    }
  }
  void learn() {
    run("long", 3);
    run("short", 1);
    (void)opened();  // ends the last forerunner
    wait_for_app("long");
    wait_for_app("short");
  }
  // Until the file tells of it.
  policy::History::Entry wait_for_app(const std::string& name) {
    policy::History::Entry found;
    house_->wait_for("status", [&](const Json&) {
      std::ifstream file(history());
      const auto known = policy::read_history(std::string{std::istreambuf_iterator<char>(file), {}});
      if (!known) return false;
      const auto app = std::find_if(known->begin(), known->end(), [&](const auto& each) { return each.app == name; });
      if (app == known->end()) return false;
      found = app->entry;
      return true;
    });
    return found;
  }
  // By the number of jobs alone the third would come to device 0, as the lower id.
  void expect_placed_by_what_was_learned() {
    const TestClient first = of_app("long"), second = of_app("short"), third = of_app("short");
    EXPECT_EQ(task_of(first)["device"], 0);
    EXPECT_EQ(task_of(second)["device"], 1);
    EXPECT_EQ(task_of(third)["device"], 1);
    EXPECT_THAT(task_of(third)["reason"], ::testing::HasSubstr("least work expected on 1"));
  }

  std::string directory_ = "/tmp/heddle-learned-XXXXXX";
};

// And says in its input log what it knew, so that a replay decides the same.
TEST_F(LearnedTest, ACrashOfHeddledForgetsNothing) {
  const std::string log = directory_ + "/inputs";
  start(kTwoDevices, policy() + "input_log = \"" + log + "\"\n");
  learn();
  const pid_t old = house_->heddled();
  house_->kill(old);
  house_->wait_for("status", [&](const Json& answer) { return answer["pid"] != old; });
  expect_placed_by_what_was_learned();
  std::ifstream file(log);
  const std::string told{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(told, ::testing::HasSubstr(" learned 'long 1 21000 "));
}

TEST_F(LearnedTest, NorDoesAnOrderlyEnd) {
  start(kTwoDevices, policy());
  learn();
  EXPECT_EQ(house_->stop(), 0);
  start(kTwoDevices, policy());
  expect_placed_by_what_was_learned();
}

TEST_F(LearnedTest, GarbageInTheFileIsNoHindrance) {
  std::ofstream(history()) << "0 history 2\n0 learned 'long 1 1e400 7 1\n";
  start(kTwoDevices, policy());
  learn();
  expect_placed_by_what_was_learned();
}

// The program is this test, which computes for a fiftieth of a second by its own clock; its task has used 7 us.
TEST_F(LearnedTest, WhatAProgramComputesItselfIsKnown) {
  start(kTwoDevices, policy("guf:cpu"));
  {
    TestClient client = of_app("computes");
    for (const clock_t begin = ::clock(); ::clock() - begin < CLOCKS_PER_SEC / 50;) {
    }
    finish(client);
  }
  (void)opened();  // ends the last forerunner
  const auto known = wait_for_app("computes");
  EXPECT_GT(known.by_host, 0);
  EXPECT_LE(known.by_host, 7e-6 / 0.019);
  EXPECT_NE(known.by_host, known.utilization);
}

// So that a batch finds the same under each policy that it sets.
TEST_F(LearnedTest, APolicyThatIsSetBeginsWithNothing) {
  std::ofstream(history()) << "0 history 2\n0 learned 'long 1 1e9 0.5 1\n0 end 1\n";
  start(kTwoDevices, policy());
  ASSERT_TRUE(house_->ask({{"command", "set_policy"}, {"policy", "guf"}}));
  const TestClient client = of_app("long");
  EXPECT_THAT(task_of(client)["reason"], ::testing::HasSubstr("fewest jobs"));
}

}  // namespace
}  // namespace heddle::daemon::testing
