#include <gmock/gmock.h>

#include <sstream>

#include "simulator/replay.h"
#include "simulator/testing/simulated.h"
#include "simulator/testing/text_log.h"

namespace heddle::simulator {
namespace {

using ::testing::Each;
using ::testing::Field;

constexpr Duration msec(int64_t count) {
  return std::chrono::milliseconds(count);
}

constexpr Bytes gib(uint64_t count) {
  return Bytes{count * kGiB};
}

// What a kernel with half of a P100's warps moves over the bus in a millisecond.
constexpr uint64_t kBusPerMs = 12'000'000 / 2;

// A P100 of 16 GiB and 3584 warps; 224 blocks of 256 threads are half of them.
Scenario eager_scenario() {
  Scenario made;
  made.policy = "schedgpu";
  made.age_limit = std::chrono::hours(1);
  made.eager_launch = true;
  made.swap.host = gib(64);
  made.revocation.resume = {};
  made.devices = {*device_preset("P100")};
  return made;
}

JobLine job_of(const char* name, std::vector<Buffer> buffers, uint32_t bursts, Duration busy, Duration start = {}) {
  JobLine line;
  line.start = start;
  JobShape& shape = line.shape;
  shape.name = shape.app = name;
  shape.need = {224, 256, 32, {}};
  shape.bursts = bursts;
  shape.busy = busy;
  shape.kernel = msec(1);
  for (Buffer& each : buffers) {
    each.until = std::min(each.until, bursts);
    shape.memory += each.size;
  }
  shape.buffers = std::move(buffers);
  return line;
}

Duration copy_of(Bytes bytes) {
  return Duration(static_cast<int64_t>(double(bytes.value) / 12.0));
}

// The first job leaves 6 GiB, and the second one's first buffer goes there.
Scenario two_jobs(Duration first = msec(1000), Bytes touched = Bytes{kBusPerMs * 50}) {
  Scenario node = eager_scenario();
  node.jobs = {job_of("first", {{gib(10)}}, 1, first),
               job_of("second", {{gib(6), {}}, {gib(4), touched}}, 1, msec(50), msec(1))};
  return node;
}

TEST(EagerJobs, WaitWhereItIsSwitchedOff) {
  Scenario node = two_jobs();
  node.eager_launch = false;
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.jobs[1].waited, msec(999));
  EXPECT_EQ(outcome.eager().launches, 0u);
}

// What it reads on the host takes as long as its kernels do otherwise: 50 ms, and it waits so long in vain.
TEST(EagerJobs, WaitForTheBusByWhatTheyTouchOnTheHost) {
  const Outcome outcome = simulated(two_jobs());
  EXPECT_EQ(outcome.jobs[1].waited, msec(0));
  EXPECT_EQ(outcome.jobs[1].eager.launches, 1u);
  EXPECT_EQ(outcome.jobs[1].eager.on_host, gib(4));
  EXPECT_EQ(outcome.jobs[1].ended, TimePoint{msec(1 + 50 + 100)});
  EXPECT_EQ(outcome.jobs[1].busy, msec(100));
  EXPECT_EQ(outcome.jobs[1].eager.promotions, 0u);
  EXPECT_EQ(outcome.jobs[0].ended, TimePoint{msec(1000)});
  EXPECT_EQ(outcome.jobs[0].eager.launches, 0u);
}

TEST(EagerJobs, WaitLessForAFasterBusAndNotForWhatTheyDoNotTouch) {
  Scenario node = two_jobs();
  node.devices[0].copy_bytes_per_s *= 2;
  EXPECT_EQ(simulated(node).jobs[1].busy, msec(75));
  EXPECT_EQ(simulated(two_jobs(msec(1000), Bytes{})).jobs[1].busy, msec(50));
}

// The bus is slowed with the kernels.
TEST(EagerJobs, AreSlowedAsTheirDeviceIs) {
  Scenario node = two_jobs();
  node.devices[0].slowdown = 3;
  EXPECT_EQ(simulated(node).jobs[1].busy, msec(300));
}

TEST(EagerJobs, TouchABufferInTheBurstsThatUseIt) {
  Scenario node = two_jobs();
  JobShape& shape = node.jobs[1].shape;
  shape.bursts = 4;
  shape.buffers[1].from = 2;
  shape.buffers[1].until = 3;
  EXPECT_EQ(simulated(node).jobs[1].busy, msec(50 + 100 + 100 + 50));
}

// With all warps it has the whole bus.
TEST(EagerJobs, HaveTheirWarpsShareOfTheBus) {
  Scenario node = two_jobs();
  node.jobs[1].shape.need.blocks = 448;
  node.jobs[0].shape.host = msec(1000);
  node.jobs[1].shape.busy = msec(10);
  EXPECT_EQ(simulated(node).jobs[1].busy, msec(10 + 25));
}

TEST(EagerJobs, NeedHalfOfTheirMemoryOnTheDeviceInWholeBuffers) {
  Scenario node = two_jobs();
  node.jobs[1].shape.buffers = {{gib(4)}, {gib(6)}};  // the first one goes there, then 2 GiB are left
  EXPECT_EQ(simulated(node).eager().launches, 0u);
  node.jobs[1].shape.buffers = {{gib(10)}};
  EXPECT_EQ(simulated(node).eager().launches, 0u);
  node.jobs[1].shape.buffers.clear();
  EXPECT_EQ(simulated(node).eager().launches, 0u);
  node.jobs[1].shape.buffers = {{gib(7)}, {gib(1)}, {gib(2)}, {gib(2)}};  // 5 of 12 GiB
  node.jobs[1].shape.memory = gib(12);
  EXPECT_EQ(simulated(node).eager().launches, 0u);
}

TEST(EagerJobs, NeedPlaceInSwapSpace) {
  Scenario node = two_jobs();
  node.swap.host = Bytes{gib(4).value - 1};
  EXPECT_EQ(simulated(node).eager().launches, 0u);
  node.swap.host = gib(4);
  EXPECT_EQ(simulated(node).eager().launches, 1u);
}

// Of two alike, each of which has a device with 6 GiB, one waits for the other's swap space.
Scenario little_swap_space() {
  Scenario node = two_jobs();
  node.policy = "mgb-warps";
  node.swap.host = gib(4);
  node.devices.push_back(node.devices[0]);
  node.jobs[0].count = 2;
  node.jobs[1].shape.bursts = 3;
  for (Buffer& each : node.jobs[1].shape.buffers) each.until = 3;
  node.jobs.push_back(node.jobs[1]);
  node.jobs[2].start = msec(2);
  return node;
}

TEST(EagerJobs, GiveSwapSpaceBack) {
  const Outcome outcome = simulated(little_swap_space());
  EXPECT_EQ(outcome.eager().launches, 2u);
  EXPECT_EQ(outcome.jobs[2].granted, TimePoint{msec(1)});
  EXPECT_EQ(outcome.jobs[3].granted, outcome.jobs[2].ended);
}

TEST(EagerJobs, OfADeviceAreOneAtATime) {
  Scenario node = eager_scenario();
  node.jobs = {job_of("first", {{gib(8)}}, 1, msec(1000)), job_of("eager", {{gib(6)}, {gib(3)}}, 1, msec(500), msec(1)),
               job_of("second", {{gib(2)}, {gib(2)}}, 1, msec(500), msec(1))};
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.jobs[1].eager.launches, 1u);
  EXPECT_EQ(outcome.jobs[2].eager.launches, 0u);
  EXPECT_GT(outcome.jobs[2].waited, msec(400));
}

// At 21 ms the first job ends. The kernel under way, a millisecond of its own time, takes two; the rest follows at full
// speed behind the copy.
TEST(Promotion, CopiesAtTheBusSpeedAndThenTheJobIsAtFullSpeed) {
  Scenario node = two_jobs(msec(71));
  node.window = {};
  const Outcome outcome = simulated(node);
  const EagerUse& eager = outcome.jobs[1].eager;
  EXPECT_EQ(eager.promotions, 1u);
  EXPECT_EQ(eager.promoted, gib(4));
  EXPECT_NEAR(double(eager.moving.count()), double(copy_of(gib(4)).count()), 2);
  // It waits for 50 ms, is 20 ms at half speed, 2 ms for the kernel, and 39 of 50 ms are left.
  const Duration ends = msec(1 + 50 + 20 + 2) + copy_of(gib(4)) + msec(39);
  EXPECT_NEAR(double(outcome.jobs[1].ended->time_since_epoch().count()), double(ends.count()), 4);
  EXPECT_EQ(outcome.jobs[1].waited, msec(0));
}

// Its kernels wait for longer than that: nothing is slower for lying on the host.
TEST(Promotion, ComesBeforeKernelsThatWaitForIt) {
  for (const char* dispatch : {"open", "fs"}) {
    Scenario node = two_jobs(msec(21));
    node.dispatch = dispatch;
    const Outcome outcome = simulated(node);
    EXPECT_EQ(outcome.jobs[1].eager.promotions, 1u);
    EXPECT_EQ(outcome.jobs[1].busy, msec(50));
    const Duration ends = msec(21) + copy_of(gib(4)) + msec(50);
    EXPECT_NEAR(double(outcome.jobs[1].ended->time_since_epoch().count()), double(ends.count()), 4) << dispatch;
    EXPECT_EQ(outcome.jobs[0].ended, TimePoint{msec(21)}) << dispatch << ": the device is its alone meanwhile";
  }
}

TEST(Promotion, NeedsAnotherWorker) {
  Scenario node = two_jobs(msec(21));
  const TimePoint at_once = *simulated(node).jobs[1].ended;
  node.revocation.resume = msec(30);
  EXPECT_EQ(*simulated(node).jobs[1].ended, at_once + msec(30));
}

TEST(Promotion, IsSlowedAsCopiesAre) {
  Scenario node = two_jobs(msec(21));
  node.devices[0].copy_slowdown = 2;
  EXPECT_NEAR(double(simulated(node).eager().moving.count()), 2 * double(copy_of(gib(4)).count()), 2);
}

// The third one would have had place in what has returned.
TEST(Promotion, GoesBeforeOthersThatWait) {
  Scenario node = two_jobs(msec(21));
  node.jobs[1].shape.busy = msec(1000);
  node.jobs.push_back(job_of("third", {{gib(8)}}, 1, msec(10), msec(2)));
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.jobs[1].eager.promotions, 1u);
  EXPECT_EQ(outcome.jobs[2].granted, outcome.jobs[1].ended);
}

// A job that computes on the host meanwhile goes on with that.
TEST(Promotion, IsBesideHostWork) {
  Scenario node = two_jobs(msec(21), Bytes{});
  JobShape& shape = node.jobs[1].shape;
  shape.bursts = 2;
  shape.busy = msec(10);
  shape.host = msec(1000);
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.jobs[1].eager.promotions, 1u);
  EXPECT_EQ(outcome.jobs[1].ended, TimePoint{msec(1 + 2 * 1010)});
}

// The copy is under way when the burst begins, and the burst waits for it.
TEST(Promotion, KeepsTheNextBurstWaiting) {
  Scenario node = two_jobs(msec(21), Bytes{});
  JobShape& shape = node.jobs[1].shape;
  shape.host = msec(100);
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.jobs[1].busy, msec(50));
  const Duration ends = msec(21) + copy_of(gib(4)) + msec(50);
  EXPECT_NEAR(double(outcome.jobs[1].ended->time_since_epoch().count()), double(ends.count()), 4);
}

TEST(Promotion, IsCountedUpToTheHorizon) {
  Scenario node = two_jobs(msec(21), Bytes{});
  node.jobs[1].shape.host = msec(100);
  node.horizon = msec(71);
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.eager().promotions, 0u);
  EXPECT_EQ(outcome.eager().moving, msec(50));
}

// Buffers are freed behind their last burst: the second job need not wait for the end of the first.
TEST(EagerFree, ReturnsABufferBehindItsLastBurst) {
  Scenario node = eager_scenario();
  node.eager_launch = false;
  node.jobs = {job_of("first", {{gib(8), {}, 1, 2}, {gib(4)}}, 5, msec(100)),
               job_of("second", {{gib(12)}}, 1, msec(1))};
  EXPECT_EQ(simulated(node).jobs[1].waited, msec(500));
  node.eager_free = true;
  EXPECT_EQ(simulated(node).jobs[1].waited, msec(200));
}

// Behind the first burst of three, which takes 100 ms, and waits for 50.
TEST(EagerFree, ReturnsWhatLiesOnTheHost) {
  Scenario node = little_swap_space();
  node.eager_free = true;
  node.jobs[1].shape.buffers[1].until = 1;
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.jobs[2].busy, msec(100 + 50 + 50));
  EXPECT_EQ(outcome.jobs[3].granted, TimePoint{msec(151)});
  EXPECT_EQ(outcome.eager().launches, 2u);
  EXPECT_EQ(outcome.eager().promotions, 0u);
}

// All that was to be promoted is freed while the kernel under way ends: nothing is copied.
TEST(EagerFree, OfWhatIsBeingPromotedSparesTheCopy) {
  Scenario node = two_jobs(msec(150));
  node.eager_free = true;
  JobShape& shape = node.jobs[1].shape;
  shape.bursts = 2;
  shape.kernel = msec(50);
  shape.buffers[1].until = 1;
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.eager().launches, 1u);
  EXPECT_EQ(outcome.eager().promotions, 0u);
  EXPECT_EQ(outcome.jobs[1].ended, TimePoint{msec(1 + 50 + 100 + 50)});
}

// Jobs of three kinds that come at random, on two devices, under each way to share a device.
Scenario random_scenario(const char* policy, const char* dispatch, uint32_t seed) {
  Scenario node = eager_scenario();
  node.policy = policy;
  node.dispatch = dispatch;
  node.seed = seed;
  node.eager_free = seed % 2 == 0;
  node.age_limit = std::chrono::seconds(2);
  node.swap.host = gib(10);
  node.devices.push_back(node.devices[0]);
  for (uint32_t kind = 0; kind < 3; ++kind) {
    JobLine line = job_of("job", {{gib(3 + kind), gib(1), 1, 3}, {gib(2), gib(2), 2, 5}, {gib(1 + kind)}}, 6,
                          msec(40 + 30 * kind));
    line.shape.tasks = 2;
    line.shape.host = msec(20 * kind);
    line.shape.copy = msec(5 * kind);
    line.count = 12;
    line.every = msec(150);
    line.random = true;
    node.jobs.push_back(line);
  }
  return node;
}

class EveryEagerDispatch : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryEagerDispatch, EndsAllJobsAndDecidesTheSameAgain) {
  EagerUse all;
  for (const char* policy : {"schedgpu", "mgb-warps", "mgb-sm"}) {
    for (uint32_t seed = 1; seed <= 6; ++seed) {
      const Scenario node = random_scenario(policy, GetParam(), seed);
      TextLog log;
      const auto outcome = World::run(node, &log);
      ASSERT_TRUE(outcome) << outcome.error().text;
      EXPECT_THAT(outcome->jobs, Each(Field(&JobOutcome::runs, 1u))) << policy << ", seed " << seed;
      all += outcome->eager();
      std::istringstream text(log.text());
      const auto again = replay(text, "log");
      ASSERT_TRUE(again) << again.error().text;
      EXPECT_EQ(again->different, 0u) << policy << ", seed " << seed;
    }
  }
  EXPECT_GT(all.launches, 0u);
  EXPECT_GT(all.promotions, 0u);
  EXPECT_LE(all.promoted, all.on_host);
}

INSTANTIATE_TEST_SUITE_P(Dispatch, EveryEagerDispatch,
                         ::testing::Values("open", "fs", "tfs", "las", "las:2", "token", "token:overlap"));

// Deadline policies have no log.
TEST(EagerJobs, EndUnderDeadlinePolicies) {
  EagerUse all;
  for (const char* dispatch : {"priority:hard", "elastic:hard", "priority:soft"}) {
    for (uint32_t seed = 1; seed <= 6; ++seed) {
      Scenario node = random_scenario("mgb-warps", dispatch, seed);
      JobLine requests = job_of("request", {{Bytes{100 * kMiB}}}, 1, msec(5));
      requests.shape.kind = policy::JobClass::kUserFacing;
      requests.count = 60;
      requests.every = msec(40);
      node.jobs.push_back(requests);
      const Outcome outcome = simulated(node);
      EXPECT_THAT(outcome.jobs, Each(Field(&JobOutcome::runs, 1u))) << dispatch << ", seed " << seed;
      all += outcome.eager();
    }
  }
  EXPECT_GT(all.promotions, 0u);
}

}  // namespace
}  // namespace heddle::simulator
