// heddled and its vault killed, one and the other and both in turn: programs and books must not notice.

#include <csignal>
#include <random>

#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;

class RestartTest : public HouseholdTest {
 protected:
  void restart() {
    const pid_t old = house_->heddled();
    house_->kill(old);
    house_->wait_for("status", [&](const Json& answer) { return answer["pid"] != old; });
  }
  uint64_t used() {
    const auto devices = house_->ask({{"command", "devices"}});
    EXPECT_TRUE(devices) << devices.error().text;
    return devices ? (*devices)["devices"][0]["used"].get<uint64_t>() : ~uint64_t{0};
  }
};

TEST_F(RestartTest, ARunningTaskGoesOnAndTheBooksAreRight) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  restart();
  EXPECT_EQ(used(), 8 * kMiB);
  client.fill(client.at(0), 1);
  ASSERT_TRUE(client.wait_completed(1));
  ASSERT_TRUE(client.resume(house_->socket()));
  ASSERT_TRUE(client.declare(2, client.at(8), Bytes{2 * kMiB}));
  client.record(RecordType::kNeed, 2);
  ASSERT_TRUE(client.wait_completed(2));
  EXPECT_EQ(used(), 10 * kMiB);
  finish(client);
}

TEST_F(RestartTest, WhatIsSaidAgainIsNotChargedTwice) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  restart();
  ASSERT_TRUE(client.resume(house_->socket()));
  ASSERT_TRUE(client.declare(1, client.at(0), Bytes{8 * kMiB}));
  ASSERT_TRUE(client.begin(1));
  ASSERT_TRUE(client.declare(2, client.at(8), Bytes{2 * kMiB}));
  client.record(RecordType::kNeed, 2);
  ASSERT_TRUE(client.wait_completed(1));
  EXPECT_EQ(used(), 10 * kMiB);
}

TEST_F(RestartTest, AJobIsToHaveOfADeviceWhatItAskedFor) {
  start(kOneDevice);
  auto opener = protocol::connect_to(house_->socket());
  const auto job = Household::ask(*opener, {{"command", "job_open"},
                                            {"name", "a"},
                                            {"weight", 2},
                                            {"share", 0.25},
                                            {"limit", 0.5},
                                            {"app", "bfs"},
                                            {"class", "user-facing"},
                                            {"slo_ns", 50'000'000u}});
  ASSERT_TRUE(job);
  TestClient client = opened((*job)["job"], (*job)["secret"]);
  restart();
  const auto ps = house_->ask({{"command", "ps"}});
  ASSERT_TRUE(ps);
  const auto& shown = (*ps)["jobs"][0];
  EXPECT_EQ(shown["weight"], 2);
  EXPECT_EQ(shown["class"], "user-facing");
  EXPECT_EQ(shown["slo_ns"], 50'000'000);
  EXPECT_EQ(shown["share"], 0.25);
  EXPECT_EQ(shown["limit"], 0.5);
  EXPECT_EQ(shown["app"], "bfs");
}

TEST_F(RestartTest, AWaitingTaskStillGetsItsTurn) {
  start(kOneDevice);
  TestClient first = running(Bytes{40 * kMiB});
  TestClient second = begun(Bytes{40 * kMiB});
  ASSERT_TRUE(second.wait_binding(Binding::kWaiting));
  restart();
  finish(first);
  EXPECT_TRUE(second.wait_binding(Binding::kBound));
}

TEST_F(RestartTest, AKeptWorkerInItsSecondTaskGoesOn) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  const pid_t worker = worker_of(client);
  finish(client);
  ASSERT_TRUE(client.declare(2, client.at(0), Bytes{4 * kMiB}));
  ASSERT_TRUE(client.begin(2));
  ASSERT_TRUE(client.wait_binding(Binding::kBound));
  restart();
  client.record(RecordType::kNeed, 2);
  ASSERT_TRUE(client.wait_completed(3));
  EXPECT_EQ(worker_of(client), worker);
  EXPECT_EQ(used(), 4 * kMiB);
}

// The control page is with the vault; what ended before heddled did was told before, and is not told again.
TEST_F(RestartTest, WhatWasMeasuredIsKept) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  finish(client);
  ASSERT_TRUE(client.declare(2, client.at(0), Bytes{4 * kMiB}));
  ASSERT_TRUE(client.begin(2));
  ASSERT_TRUE(client.wait_binding(Binding::kBound));
  restart();
  const auto usage = [&] { return (*house_->ask({{"command", "ps"}}))["sessions"][0]["usage"]["launches"]; };
  EXPECT_EQ(usage(), 7);
  client.record(RecordType::kFree, 2);
  client.record(RecordType::kTaskEnd, 2);
  ASSERT_TRUE(client.wait_binding(Binding::kUnbound));
  EXPECT_EQ(usage(), 14);
  const auto trace = house_->ask({{"command", "trace"}, {"since", 0}});
  ASSERT_TRUE(trace);
  EXPECT_EQ((*trace)["events"].back()["kind"], "task_ended");
  EXPECT_EQ((*trace)["events"].back()["launches"], 7);
}

// It has no note that says what it stays for: another is as good.
TEST_F(RestartTest, AKeptWorkerIsReplaced) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  const pid_t worker = worker_of(client);
  finish(client);
  restart();
  ASSERT_TRUE(client.resume(house_->socket()));
  ASSERT_TRUE(client.declare(2, client.at(0), Bytes{4 * kMiB}));
  ASSERT_TRUE(client.begin(2));
  ASSERT_TRUE(client.wait_binding(Binding::kBound));
  client.record(RecordType::kNeed, 2);
  ASSERT_TRUE(client.wait_completed(3));
  EXPECT_NE(worker_of(client), worker);
}

TEST_F(RestartTest, AFreeThatNobodyHeardIsCounted) {
  start(kOneDevice);
  TestClient client = opened();
  ASSERT_TRUE(client.declare(1, client.at(0), Bytes{8 * kMiB}));
  ASSERT_TRUE(client.declare(2, client.at(8), Bytes{8 * kMiB}));
  ASSERT_TRUE(client.begin(1));
  ASSERT_TRUE(client.wait_binding(Binding::kBound));
  const pid_t heddled = house_->heddled();
  house_->signal(heddled, SIGSTOP);
  client.record(RecordType::kFree, 2);
  ASSERT_TRUE(client.wait_completed(1));
  house_->kill(heddled);
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["used"] == 8 * kMiB; });
}

TEST_F(RestartTest, TheVaultIsReplacedAndThenSavesHeddled) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  house_->kill(house_->vault());
  house_->wait_for("status", [](const Json& answer) { return answer["vault_replacements"] == 1; });
  restart();
  EXPECT_EQ(used(), 8 * kMiB);
  client.fill(client.at(0), 1);
  EXPECT_TRUE(client.wait_completed(1));
}

// Sessions that come and go fill its socket; heddled does without it then, and it makes no second heddled when it
// wakes.
TEST_F(RestartTest, AStoppedVaultIsReplacedAndStartsNobody) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  const pid_t stopped = house_->vault(), heddled = house_->heddled();
  const Fd old_vault = *open_pidfd(stopped);
  house_->signal(stopped, SIGSTOP);
  for (int i = 0; i < 5000 && (*house_->ask({{"command", "status"}}))["vault_replacements"] == 0; ++i)
    ASSERT_TRUE(house_->client());
  house_->wait_for("status", [](const Json& answer) { return answer["vault_replacements"] == 1; });
  house_->signal(stopped, SIGCONT);
  house_->wait_for_end_or_answer(old_vault, heddled);
  EXPECT_EQ(house_->heddled(), heddled);
  EXPECT_EQ(used(), 8 * kMiB);
  client.fill(client.at(0), 1);
  EXPECT_TRUE(client.wait_completed(1));
}

TEST_F(RestartTest, AWorkerThatDiedAtWorkMeanwhileFailsItsProgram) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  compute(client);
  const pid_t worker = worker_of(client), heddled = house_->heddled();
  house_->signal(heddled, SIGSTOP);
  house_->kill(worker);
  house_->kill(heddled);
  EXPECT_TRUE(client.wait_binding(Binding::kFailed));
  EXPECT_EQ(client.header().error.load(), 719u);
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["used"] == 0; });
}

TEST_F(RestartTest, ACrashLoopEndsWithTheVault) {
  start(kOneDevice);
  const Fd vault = *open_pidfd(house_->vault());
  for (int i = 0; i < 6 && !has_ended(vault); ++i) {
    const pid_t heddled = house_->heddled();
    if (heddled > 0) house_->kill(heddled);
    house_->wait_for_end_or_answer(vault, heddled);
  }
  EXPECT_TRUE(has_ended(vault));
  EXPECT_TRUE(house_->processes("heddled").empty());
}

TEST_F(RestartTest, IdsAreNotUsedTwice) {
  start(kOneDevice);
  const uint64_t before = opened().welcome().session;
  restart();
  EXPECT_GT(opened().welcome().session, before);
}

TEST_F(RestartTest, AnOrderlyEndLeavesNothing) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  EXPECT_EQ(house_->stop(), 0);
  EXPECT_TRUE(client.wait_binding(Binding::kFailed));
  EXPECT_THAT(client.error_text(), ::testing::HasSubstr("shut down"));
  EXPECT_TRUE(house_->processes("heddle").empty());
}

// Programs come and go while heddled, its vault and workers are killed at random; in the end nothing is left.
class RandomDeathTest : public RestartTest {
 protected:
  // heddled at most four times: a fifth within a minute makes the vault give up.
  void kill_one_of(std::mt19937& random) {
    const char* names[] = {"heddled", "heddle-vault", "heddle-worker", "heddle-worker"};
    std::string name = names[random() % 4];
    if (name == "heddled" && ++heddled_deaths_ > 4) name = "heddle-vault";
    const auto victims = house_->processes(name);
    if (victims.empty()) return;
    const pid_t victim = victims[random() % victims.size()];
    house_->kill(victim);
    if (name != "heddle-vault") return;
    // Two copies are all there are: while a new vault is being filled, heddled's death would be one too many.
    house_->wait_for("status", [&](const Json& answer) {
      const auto vaults = house_->processes("heddle-vault");
      return answer.contains("pid") && vaults.size() == 1 && vaults[0] != victim;
    });
  }
  int heddled_deaths_ = 0;
};

TEST_F(RandomDeathTest, LeaveTheBooksAtZero) {
  start(kTwoDevices, "reconnect_grace = \"2s\"\n");
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    auto client = house_->client();
    if (!client || !client->open_device()) continue;  // heddled died under it
    (void)client->declare(1, client->at(0), Bytes{(1 + random() % 16) * 2 * kMiB});
    (void)client->begin(1);
    kill_one_of(random);
  }
  (void)house_->client();  // ends the last forerunner
  house_->wait_idle(1);
}

}  // namespace
}  // namespace heddle::daemon::testing
