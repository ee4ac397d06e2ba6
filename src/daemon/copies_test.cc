// Copies between a program's devices: heddled and keepers are real, over the driver that tests bring, which plays two
// GPUs; the program is a client by hand.

#include <csignal>
#include <fstream>
#include <set>

#include "daemon/testing/fake_gpus.h"
#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {
namespace {

using namespace protocol;

constexpr const char* kTwoGpus = R"(
[[gpu]]
memory = "256M"
context_memory = "0"
)";

class CopiesTest : public HouseholdTest {
 protected:
  CopiesTest() { gpus_.machine("2"); }

  // A program with a running task on each of its two devices: segment 1 at(0) on the first, 2 at(8) on the second.
  TestClient on_both() {
    TestClient client = running(Bytes{4 * kMiB});
    client.record(RecordType::kNeed, 1);
    EXPECT_TRUE(client.wait_completed(1));
    EXPECT_TRUE(client.open_device(1));
    EXPECT_TRUE(client.socket().send(DeclareSegment{0, 2, client.at(8), 4 * kMiB, SegmentKind::kDevice, 1}));
    BeginTask task{1};
    task.need = {1, 128, 1};
    EXPECT_TRUE(client.socket().send(task));
    client.record(RecordType::kNeed, 2);
    EXPECT_TRUE(client.wait_completed(1)) << client.error_text();
    return client;
  }
  static void ask(TestClient& client, uint64_t bytes = 4 * kMiB) {
    ASSERT_TRUE(client.ask(CopyAcross{0, {client.at(8)}, {client.at(0)}, bytes, 1, 1}));
  }
  static CopyAnswer answer(TestClient& client) {
    const auto answer = client.socket().expect<CopyAnswer>(TestClient::kPatience);
    EXPECT_TRUE(answer) << answer.error().text;
    return answer.value_or(CopyAnswer{});
  }
  // What keepers have copied, over all devices.
  uint64_t copies() {
    uint64_t sum = 0;
    const Json answer = *house_->ask({{"command", "devices"}});
    for (const Json& device : answer["devices"]) sum += device["keeper_copies"].get<uint64_t>();
    return sum;
  }
  void signal_keepers(int signal) {
    for (const pid_t pid : children_named("heddle-keeper")) ::kill(pid, signal);
  }

  FakeGpus gpus_;
};

TEST_F(CopiesTest, AreDoneByAKeeper) {
  start(kTwoGpus);
  TestClient client = on_both();
  ask(client);
  const auto done = answer(client);
  EXPECT_EQ(done.done, 1u) << get_text(done.text);
  EXPECT_EQ(copies(), 1u);
  const Json devices = *house_->ask({{"command", "devices"}});
  EXPECT_EQ(
      devices["devices"][0]["keeper_copied"].get<uint64_t>() + devices["devices"][1]["keeper_copied"].get<uint64_t>(),
      4 * kMiB);
}

TEST_F(CopiesTest, BetweenGpusThatDoNotReachEachOtherAreTheProgramsBusiness) {
  gpus_.machine("2 apart");
  start(kTwoGpus, "policy = \"sa\"\n");  // each task alone on its GPU
  TestClient client = on_both();
  ask(client);
  const auto refused = answer(client);
  EXPECT_EQ(refused.done, 0u);
  EXPECT_THAT(get_text(refused.text), ::testing::HasSubstr("cannot be reached"));
  EXPECT_EQ(copies(), 0u);
  ask(client);  // and nobody is harmed
  EXPECT_EQ(answer(client).done, 0u);
}

TEST_F(CopiesTest, OfMemoryThatIsNotThereAreTheProgramsBusiness) {
  start(kTwoGpus);
  TestClient client = running(Bytes{4 * kMiB});
  client.record(RecordType::kNeed, 1);
  ASSERT_TRUE(client.wait_completed(1));
  ASSERT_TRUE(client.open_device(1));
  ASSERT_TRUE(client.socket().send(DeclareSegment{0, 2, client.at(8), 4 * kMiB, SegmentKind::kDevice, 1}));
  ask(client);
  const auto refused = answer(client);
  EXPECT_EQ(refused.done, 0u);
  EXPECT_THAT(get_text(refused.text), ::testing::HasSubstr("segment 2 has no memory on a GPU"));
}

TEST_F(CopiesTest, OnSoftwareDevicesAreTheProgramsBusiness) {
  start(kTwoDevices);
  TestClient client = on_both();
  ask(client);
  EXPECT_EQ(answer(client).done, 0u);
}

TEST_F(CopiesTest, SurviveTheirKeeper) {
  start(kTwoGpus);
  TestClient client = on_both();
  signal_keepers(SIGSTOP);
  ask(client);
  ASSERT_TRUE(house_->ask({{"command", "ping"}}));  // asked behind the copy: the keeper has it
  signal_keepers(SIGKILL);
  const auto done = answer(client);
  EXPECT_EQ(done.done, 1u) << get_text(done.text);
}

TEST_F(CopiesTest, AreRepeatedWithARestartedHeddled) {
  start(kTwoGpus);
  TestClient client = on_both();
  signal_keepers(SIGSTOP);
  const auto keepers = children_named("heddle-keeper");
  EXPECT_FALSE(keepers.empty());
  ask(client);
  ASSERT_TRUE(house_->ask({{"command", "ping"}}));
  const pid_t old = house_->heddled();
  house_->kill(old);
  house_->wait_for("status", [&](const Json& status) { return status["pid"] != old; });
  ASSERT_TRUE(client.resume(house_->socket()));
  ask(client);
  const auto done = answer(client);
  EXPECT_EQ(done.done, 1u) << get_text(done.text);
  // The old keepers, stopped with the copy before them, have died with their heddled.
  for (const pid_t keeper : keepers) {
    const auto process = open_pidfd(keeper);
    EXPECT_TRUE(!process || has_ended(*process));
  }
}

TEST_F(CopiesTest, EndWhereTheirMemoryIsGivenBack) {
  start(kTwoGpus);
  TestClient client = on_both();
  signal_keepers(SIGSTOP);
  ask(client);
  ASSERT_TRUE(house_->ask({{"command", "ping"}}));  // heddled has it before it hears of the free
  client.record(RecordType::kFree, 2);
  const auto ended = answer(client);
  EXPECT_EQ(ended.done, 0u);
  EXPECT_THAT(get_text(ended.text), ::testing::HasSubstr("given back"));
  signal_keepers(SIGCONT);
  // The next answer is the next request's.
  ASSERT_TRUE(client.ask(CopyAcross{0, {client.at(0)}, {client.at(1)}, 8, 1, 1}));
  EXPECT_EQ(answer(client).done, 1u);
}

TEST_F(CopiesTest, EndWithTheirProgram) {
  start(kTwoGpus);
  {
    TestClient client = on_both();
    signal_keepers(SIGSTOP);
    ask(client);
    ASSERT_TRUE(house_->ask({{"command", "ping"}}));
    // A liar, so that heddled ends its session though this process lives.
    (void)client.socket().send(Shutdown{});
    EXPECT_TRUE(client.wait_binding(Binding::kFailed));
  }
  signal_keepers(SIGCONT);
  house_->wait_for("devices", [](const Json& answer) {
    return answer["devices"][0]["used"] == 0 && answer["devices"][1]["used"] == 0;
  });
}

TEST_F(CopiesTest, OfManyThreadsAreUnderWayAtOnceUpToALimit) {
  start(kTwoGpus);
  TestClient client = on_both();
  signal_keepers(SIGSTOP);
  const uint64_t before = client.last_request();
  for (int i = 0; i < 17; ++i) ask(client);
  const auto refused = answer(client);
  EXPECT_EQ(refused.request, before + 17);
  EXPECT_EQ(refused.done, 0u);
  EXPECT_THAT(get_text(refused.text), ::testing::HasSubstr("16 copies of the session are under way"));
  signal_keepers(SIGCONT);
  std::set<uint64_t> answered;
  for (int i = 0; i < 16; ++i) {
    const auto done = answer(client);
    EXPECT_EQ(done.done, 1u) << get_text(done.text);
    answered.insert(done.request);
  }
  EXPECT_EQ(answered.size(), 16u);
}

}  // namespace
}  // namespace heddle::daemon::testing
