#include <gmock/gmock.h>

#include "simulator/testing/simulated.h"

namespace heddle::simulator {
namespace {

using ::testing::HasSubstr;

constexpr Duration in_ms(int64_t count) {
  return std::chrono::milliseconds(count);
}

JobLine line_of(const char* name, uint32_t count, Duration busy, Duration every = {}) {
  JobLine line;
  line.shape.name = line.shape.app = name;
  line.shape.memory = Bytes{kMiB};
  line.shape.need = {1, 32, 32, {}};
  line.shape.busy = busy;
  line.count = count;
  line.every = every;
  return line;
}

JobLine requests(uint32_t count, Duration busy, Duration every) {
  JobLine line = line_of("request", count, busy, every);
  line.shape.kind = policy::JobClass::kUserFacing;
  line.start = every;
  return line;
}

Scenario node_of(size_t devices, const char* dispatch, std::vector<JobLine> jobs) {
  Scenario made;
  made.dispatch = dispatch;
  made.devices.assign(devices, *device_preset("P100"));
  made.jobs = std::move(jobs);
  return made;
}

TEST(Requests, AreMetWithinTheirSlo) {
  Scenario node = node_of(1, "fifo", {requests(10, in_ms(150), in_ms(1000))});
  const Outcome met = simulated(node);
  EXPECT_EQ(met.user_facing.requests(), 10u);
  EXPECT_EQ(met.user_facing.met(), 10u);
  EXPECT_EQ(met.user_facing.times().at(0.5), in_ms(150));
  EXPECT_EQ(met.user_facing.waits().at(1), in_ms(0));
  node.jobs[0].shape.slo = in_ms(149);
  EXPECT_EQ(simulated(node).user_facing.met(), 0u);
}

// Each burst of a job that stays is one, and under policies that know nothing of classes, too.
TEST(Requests, AreTheBurstsOfAJob) {
  Scenario node = node_of(1, "tfs", {requests(1, in_ms(50), in_ms(10))});
  node.jobs[0].shape.bursts = 20;
  node.jobs[0].shape.host = in_ms(30);
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.user_facing.met(), 20u);
  EXPECT_EQ(outcome.user_facing.times().at(1), in_ms(50));
  EXPECT_EQ(outcome.user_facing.busy(), in_ms(1000));
}

TEST(Requests, ThoseThatAreOpenBeyondTheirSloAtTheHorizonAreMissed) {
  Scenario node = node_of(1, "fifo", {line_of("batch", 1, in_ms(5000)), requests(10, in_ms(10), in_ms(100))});
  node.horizon = in_ms(1050);
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.user_facing.missed(), 8u) << "the last two may still be met";
  EXPECT_EQ(outcome.user_facing.met(), 0u);
}

// Batch fills the device alone, as do requests; it has its part of it at all times, and nothing is run again.
TEST(Share, RequestsRunBesideBatchOnAPartOfTheSms) {
  Scenario node = node_of(1, "priority:share", {line_of("batch", 1, in_ms(1000))});
  node.jobs[0].shape.need = {448, 256, 32, {}};
  EXPECT_NEAR(double(simulated(node).makespan.count()), 1e9 * 56 / 44, 2);
  node.batch_sms = 50;
  EXPECT_EQ(simulated(node).makespan, in_ms(2000));
  node.jobs.push_back(requests(2, in_ms(50), in_ms(400)));
  node.jobs[1].shape.need = {224, 256, 32, {}};
  const Outcome beside = simulated(node);
  EXPECT_EQ(beside.makespan, in_ms(2000)) << "requests fit beside it";
  EXPECT_EQ(beside.user_facing.met(), 2u);
  EXPECT_EQ(beside.user_facing.times().at(1), in_ms(50));
  EXPECT_EQ(beside.batch.revocations(), 0u);
  EXPECT_EQ(beside.batch.lost(), Duration{});
}

TEST(Share, NeedsDevicesThatRunProgramsTogether) {
  Scenario node = node_of(1, "priority:share", {line_of("batch", 1, in_ms(1000))});
  node.devices[0].sharing = Sharing::kTimeSliced;
  const auto refused = World::run(node);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("in time slices"));
}

// One kernel of ten seconds, and a request in its middle.
class Revoked : public ::testing::TestWithParam<std::tuple<const char*, bool, int64_t>> {};

TEST_P(Revoked, TheRequestIsMetAndWhatWasInFlightIsRunAgain) {
  const auto [dispatch, met, makespan] = GetParam();
  Scenario node = node_of(1, dispatch, {line_of("batch", 1, in_ms(10'000)), requests(1, in_ms(100), in_ms(4000))});
  node.revocation = {.terminate = in_ms(15), .resume = in_ms(30)};
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.user_facing.met(), met ? 1u : 0u);
  EXPECT_EQ(outcome.makespan, in_ms(makespan));
  EXPECT_EQ(outcome.batch.lost(), met ? in_ms(4000) : Duration{});
  EXPECT_EQ(outcome.batch.terminations(), met ? 1u : 0u);
  EXPECT_EQ(outcome.completed(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Deadlines, Revoked,
                         ::testing::Values(std::tuple("fifo", false, 10'100), std::tuple("priority:off", false, 10'100),
                                           std::tuple("priority:soft", false, 10'100),
                                           std::tuple("elastic:off", false, 10'100),
                                           // 4 s for nothing, gone after 15 ms, 100 ms, 30 ms until it goes on
                                           std::tuple("priority:hard", true, 14'145)));

TEST(Revocation, SoftWaitsForAKernelAndLosesNothing) {
  Scenario node =
      node_of(1, "priority:soft", {line_of("batch", 1, in_ms(10'000)), requests(1, in_ms(100), in_ms(4000))});
  node.jobs[0].shape.kernel = in_ms(20);
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.user_facing.met(), 1u);
  EXPECT_EQ(outcome.batch.lost(), Duration{});
  EXPECT_EQ(outcome.batch.revocations(), 1u);
  EXPECT_EQ(outcome.batch.revocation_latencies().at(1), in_ms(20));
  EXPECT_EQ(outcome.makespan, in_ms(10'100));
}

// Kernels of 400 ms: terminated in the middle of one at once, in an epoch that began at 3.2 s where they are of 800 ms.
TEST(Revocation, WhatHasCommittedIsNotRunAgain) {
  Scenario node =
      node_of(1, "priority:hard", {line_of("batch", 1, in_ms(10'000)), requests(1, in_ms(10), in_ms(3950))});
  node.jobs[0].shape.kernel = in_ms(400);
  EXPECT_EQ(simulated(node).batch.lost(), in_ms(350));
  node.revocation.epoch = in_ms(800);
  EXPECT_EQ(simulated(node).batch.lost(), in_ms(750));
  node.revocation.epoch = in_ms(790);
  EXPECT_EQ(simulated(node).batch.lost(), in_ms(750)) << "an epoch ends with a kernel";
}

TEST(Revocation, AllWorkIsDoneInTheEndWhateverIsRevoked) {
  for (const char* dispatch :
       {"fifo", "priority:off", "priority:soft", "priority:hard", "elastic:off", "elastic:soft", "elastic:hard"}) {
    Scenario node =
        node_of(2, dispatch, {line_of("batch", 6, in_ms(700), in_ms(300)), requests(60, in_ms(30), in_ms(35))});
    node.jobs[0].shape.kernel = in_ms(35);
    node.jobs[0].shape.copy = in_ms(10);
    node.jobs[0].shape.bursts = 3;
    node.jobs[0].shape.host = in_ms(5);
    node.jobs[1].random = true;
    const Outcome once = simulated(node), again = simulated(node);
    EXPECT_EQ(once.completed(), 66u) << dispatch;
    EXPECT_EQ(once.user_facing.requests(), 60u) << dispatch;
    EXPECT_EQ(once.makespan, again.makespan) << dispatch;
    const Duration wanted = in_ms(6 * 3 * 700);
    EXPECT_NEAR(double((once.batch.busy() - once.batch.lost()).count()), double(wanted.count()), 1e5) << dispatch;
  }
}

// A batch burst of 60 s on the only device, of kernels that take longer than the SLO: no revocation is quick enough.
TEST(Revocation, RequestsDoNotStarveWhereItTakesLongerThanTheirSlo) {
  for (const auto& [dispatch, longest] :
       {std::pair("priority:off", 1600), std::pair("priority:soft", 300), std::pair("priority:hard", 300),
        std::pair("elastic:off", 1600), std::pair("elastic:soft", 1600), std::pair("elastic:hard", 1600)}) {
    SCOPED_TRACE(dispatch);
    Scenario node = node_of(1, dispatch, {line_of("batch", 1, in_ms(60'000)), requests(20, in_ms(10), in_ms(1500))});
    node.jobs[0].shape.kernel = in_ms(300);
    node.jobs[1].shape.slo = in_ms(20);
    const Outcome outcome = simulated(node);
    EXPECT_EQ(outcome.completed(), 21u);
    EXPECT_LE(outcome.user_facing.waits().at(1), in_ms(longest));
  }
}

// The second P100 is of another name: what waits for it is no reason to revoke the first.
TEST(Revocation, IsAmongDevicesOfOneModel) {
  Scenario node =
      node_of(2, "priority:hard", {line_of("batch", 2, in_ms(10'000)), requests(1, in_ms(100), in_ms(4000))});
  std::snprintf(node.devices[1].model, sizeof node.devices[1].model, "other");
  node.jobs[1].shape.model = "other";
  node.jobs.push_back(line_of("its batch", 1, in_ms(6000)));
  node.jobs.back().shape.model = "other";
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.user_facing.met(), 1u);
  EXPECT_EQ(outcome.batch.terminations(), 1u);
  EXPECT_EQ(outcome.jobs[0].busy, in_ms(10'000));
}

TEST(Revocation, IsNotLogged) {
  struct Nowhere : InputLog {
    void write(std::string_view) override {}
  } log;
  const Scenario node = node_of(1, "elastic:hard", {line_of("batch", 1, in_ms(1))});
  EXPECT_THAT(World::run(node, &log).error().text, HasSubstr("leave out --log"));
}

TEST(Requests, TakeAsLongAsIsDrawn) {
  Scenario node = node_of(1, "fifo", {requests(2000, in_ms(10), in_ms(100))});
  node.jobs[0].shape.busy_most = in_ms(30);
  const Outcome outcome = simulated(node);
  EXPECT_NEAR(double(outcome.user_facing.times().at(0.5).count()), 20e6, 1e6);
  EXPECT_LE(outcome.user_facing.times().at(1), in_ms(30));
  EXPECT_NEAR(double(outcome.user_facing.times().at(0.01).count()), 10.2e6, 0.4e6);
  EXPECT_EQ(simulated(node).makespan, outcome.makespan);
}

}  // namespace
}  // namespace heddle::simulator
