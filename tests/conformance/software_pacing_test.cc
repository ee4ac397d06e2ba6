#include "conformance_test.h"
#include "software_target.h"

// That software devices keep the pace of their model. Everything is checked on the times that completions report, and
// allows for what they report as overrun: no test depends on how fast this machine is.
namespace heddle::conformance {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kThreads = 256;  // a block is 8 of an SM's 64 warps
constexpr uint32_t kWave = 16;      // blocks that the two SMs hold at once
constexpr uint32_t kMostBlocks = 64;
constexpr Duration kRounding = std::chrono::nanoseconds(50);

DeviceModel slow_model() {
  DeviceModel model = *device_preset("V100");
  model.sms = 2;
  model.slowdown = 5000;
  model.copy_slowdown = 1000;  // 12 MB/s
  return model;
}

std::unique_ptr<Target> slow() {
  return software_target(slow_model());
}
std::unique_ptr<Target> slow_time_sliced() {
  DeviceModel model = slow_model();
  model.sharing = Sharing::kTimeSliced;
  return software_target(model);
}
// Slow enough for the host, fast enough for kernels that are longer than a slice.
std::unique_ptr<Target> time_sliced() {
  DeviceModel model = slow_model();
  model.sharing = Sharing::kTimeSliced;
  model.slowdown = 50;
  return software_target(model);
}
constexpr Duration kTimeSlice = milliseconds(2 * 50);
std::unique_ptr<Target> faster_than_any_host() {
  DeviceModel model = slow_model();
  model.slowdown = 1e-3;
  return software_target(model);
}

class PacingTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    memory_ = map(2 * kMostBlocks * kThreads * sizeof(unsigned));
  }
  // Streams 0 and 1 work in memory of their own.
  device::Tag work(device::StreamIndex stream, uint32_t blocks, int rounds) {
    const uint64_t mine = memory_ + stream * kMostBlocks * kThreads * sizeof(unsigned);
    return launch(stream, "work", {blocks}, {kThreads}, Parameters(mine, rounds));
  }
  uint64_t memory_ = 0;
};

Duration length(const device::Completion& done) {
  return done.ended - done.started;
}

Duration overrun(const device::Completion& done) {
  return Duration(done.overrun_ns);
}

// `actual` is what the model says, or more by what the host was late.
void expect_length(Duration actual, Duration expected, Duration late) {
  EXPECT_GE(actual, expected - kRounding);
  EXPECT_LE(actual, expected + late + kRounding);
}

class ConcurrentPacingTest : public PacingTest {};
INSTANTIATE_TEST_SUITE_P(On, ConcurrentPacingTest, testing::Values(TargetKind{"SlowDevice", slow}), target_name);
class AnyPacingTest : public PacingTest {};
INSTANTIATE_TEST_SUITE_P(On, AnyPacingTest,
                         testing::Values(TargetKind{"SlowDevice", slow},
                                         TargetKind{"SlowTimeSlicedDevice", slow_time_sliced}),
                         target_name);
class TimeSlicedPacingTest : public PacingTest {};
INSTANTIATE_TEST_SUITE_P(On, TimeSlicedPacingTest, testing::Values(TargetKind{"TimeSlicedDevice", time_sliced}),
                         target_name);
class OverrunTest : public PacingTest {};
INSTANTIATE_TEST_SUITE_P(On, OverrunTest, testing::Values(TargetKind{"TooFastDevice", faster_than_any_host}),
                         target_name);

TEST_P(AnyPacingTest, TimeIsProportionalToInstructions) {
  auto once = wait_for(work(0, 1, 1000)), twice = wait_for(work(0, 1, 2000)), thrice = wait_for(work(0, 1, 3000));
  Duration step = length(twice) - overrun(twice) - (length(once) - overrun(once));
  EXPECT_GT(step, milliseconds(1));
  expect_length(length(thrice), length(twice) - overrun(twice) + step, overrun(thrice));
}

TEST_P(AnyPacingTest, AFullDeviceTakesNoLongerThanOneBlock) {
  auto one = wait_for(work(0, 1, 1000)), wave = wait_for(work(0, kWave, 1000));
  expect_length(length(wave), length(one) - overrun(one), overrun(wave));
}

TEST_P(AnyPacingTest, BlocksBeyondTheDeviceMakeWaves) {
  auto one = wait_for(work(0, 1, 1000)), waves = wait_for(work(0, 3 * kWave, 1000));
  expect_length(length(waves), 3 * (length(one) - overrun(one)), overrun(waves));
}

TEST_P(AnyPacingTest, LaunchesPayTheirLatency) {
  auto before = wait_for(mark(0));
  auto done = wait_for(work(0, 1, 10));
  EXPECT_GE(done.started - before.ended, Duration(slow_model().launch_latency_ns) * 5000);
}

TEST_P(AnyPacingTest, QueuedLaunchesFollowWithoutAGap) {
  std::vector<device::Tag> tags;
  for (int i = 0; i < 5; ++i) tags.push_back(work(0, 1, 3000));
  auto before = wait_for(tags[0]);
  for (size_t i = 1; i < tags.size(); ++i) {
    auto done = wait_for(tags[i]);
    expect_length(done.started - before.ended, Duration(0), Duration(0));
    before = done;
  }
}

TEST_P(ConcurrentPacingTest, StreamsShareTheDevice) {
  ASSERT_TRUE(context().create_stream(1, true, 0));
  auto one = wait_for(work(0, kWave / 2, 3000));
  auto first = work(0, kWave / 2, 3000), second = work(1, kWave / 2, 3000);
  auto first_done = wait_for(first), second_done = wait_for(second);
  EXPECT_LT(second_done.started, first_done.ended) << "both fit at once";
  expect_length(length(second_done), length(one) - overrun(one), overrun(second_done));
}

TEST_P(AnyPacingTest, CopiesTakeTheTimeOfTheirBytes) {
  std::vector<uint8_t> bytes(360'000);
  uint64_t to = map(bytes.size());
  auto done = wait_for(to_device(0, to, bytes.data(), bytes.size()));
  expect_length(length(done), milliseconds(30), overrun(done));
  auto small = wait_for(to_host(0, bytes.data(), to, 1200));
  expect_length(length(small), std::chrono::microseconds(100), overrun(small));
}

TEST_P(AnyPacingTest, CopiesInOneDirectionFollowEachOther) {
  ASSERT_TRUE(context().create_stream(1, true, 0));
  std::vector<uint8_t> bytes(120'000);
  uint64_t to = map(2 * bytes.size());
  auto first = to_device(0, to, bytes.data(), bytes.size());
  auto second = to_device(1, to + bytes.size(), bytes.data(), bytes.size());
  auto first_done = wait_for(first), second_done = wait_for(second);
  EXPECT_GE(second_done.started, first_done.ended - overrun(first_done));
}

TEST_P(AnyPacingTest, CopiesInBothDirectionsOverlap) {
  ASSERT_TRUE(context().create_stream(1, true, 0));
  std::vector<uint8_t> in(360'000), out(360'000);
  uint64_t to = map(in.size()), from = map(out.size());
  auto first = to_device(0, to, in.data(), in.size()), second = to_host(1, out.data(), from, out.size());
  auto first_done = wait_for(first), second_done = wait_for(second);
  EXPECT_LT(second_done.started, first_done.ended);
  expect_length(length(second_done), milliseconds(30), overrun(second_done));
}

TEST_P(AnyPacingTest, CopiesAndKernelsOverlap) {
  ASSERT_TRUE(context().create_stream(1, true, 0));
  std::vector<uint8_t> bytes(1'200'000);
  uint64_t to = map(bytes.size());
  auto one = wait_for(work(0, kWave, 3000));
  auto copy = to_device(1, to, bytes.data(), bytes.size()), kernel = work(0, kWave, 3000);
  auto copied = wait_for(copy), computed = wait_for(kernel);
  EXPECT_LT(copied.started, computed.ended);
  EXPECT_LT(computed.started, copied.ended);
  expect_length(length(copied), milliseconds(100), overrun(copied));
  expect_length(length(computed), length(one) - overrun(one), overrun(computed));
}

TEST_P(AnyPacingTest, TheSameLaunchOnAnIdleDeviceTakesTheSameTime) {
  auto first = wait_for(work(0, kWave, 2000));
  for (int i = 0; i < 3; ++i) {
    auto again = wait_for(work(0, kWave, 2000));
    expect_length(length(again), length(first) - overrun(first), overrun(again));
  }
}

// A second context, on the same device or another, with memory of its own.
class Neighbour {
 public:
  explicit Neighbour(Target& target) : memory_(target.window_base() + target.window_bytes() / 2) {
    context_ = std::move(*target.open(nullptr));
    EXPECT_TRUE(context_->map(memory_, Bytes{2 * kMiB}, *target.allocate(Bytes{2 * kMiB}), false));
    std::string fatbin = kernels_from_ptx();
    kernel_ = *context_->kernel(**context_->load(std::as_bytes(std::span(fatbin))), "work");
  }
  void work(uint32_t blocks, int rounds) {
    Parameters parameters(memory_, rounds);
    EXPECT_TRUE(context_->launch(0, *kernel_, {{blocks}, {kThreads}, 0, false, parameters.bytes()}, 1));
  }
  device::Completion wait() {
    device::Completion done[1];
    EXPECT_EQ(context_->completions(done, std::chrono::seconds(60)), 1u);
    return done[0];
  }

 private:
  uint64_t memory_;
  std::unique_ptr<device::Context> context_;
  device::Kernel* kernel_ = nullptr;
};

TEST_P(ConcurrentPacingTest, ContextsThatFitTogetherDoNotSlowEachOther) {
  Neighbour neighbour(target());
  auto one = wait_for(work(0, kWave / 2, 3000));
  auto mine = work(0, kWave / 2, 3000);
  neighbour.work(kWave / 2, 3000);
  auto mine_done = wait_for(mine), other_done = neighbour.wait();
  Duration alone = length(one) - overrun(one);
  EXPECT_LT(other_done.started, mine_done.ended);
  expect_length(length(mine_done), alone, overrun(mine_done));
  expect_length(length(other_done), alone, overrun(other_done));
}

TEST_P(AnyPacingTest, DevicesDoNotSlowEachOther) {
  const auto other_device = GetParam().make();
  Neighbour neighbour(*other_device);
  auto one = wait_for(work(0, kWave, 3000));
  auto mine = work(0, kWave, 3000);
  neighbour.work(kWave, 3000);
  auto mine_done = wait_for(mine), other_done = neighbour.wait();
  Duration alone = length(one) - overrun(one);
  expect_length(length(mine_done), alone, overrun(mine_done));
  expect_length(length(other_done), alone, overrun(other_done));
}

TEST_P(ConcurrentPacingTest, ContextThatFindsTheDeviceFullStartsWhenTheOtherEnds) {
  Neighbour neighbour(target());
  auto mine = work(0, kWave, 3000);
  neighbour.work(kWave, 3000);
  auto first = wait_for(mine), second = neighbour.wait();
  if (second.started < first.started) std::swap(first, second);
  const Duration late = overrun(first);
  expect_length(second.started - (first.ended - late), Duration(0), late);
}

TEST_P(TimeSlicedPacingTest, ContextsTakeTurns) {
  constexpr int kRounds = 400'000;  // about two slices
  Neighbour neighbour(target());
  auto one = wait_for(work(0, 1, kRounds));
  Duration alone = length(one) - overrun(one);
  auto mine = work(0, 1, kRounds);
  neighbour.work(1, kRounds);
  auto mine_done = wait_for(mine), other_done = neighbour.wait();
  EXPECT_LT(mine_done.started, other_done.ended);
  EXPECT_LT(other_done.started, mine_done.ended);
  Duration all = std::max(mine_done.ended, other_done.ended) - std::min(mine_done.started, other_done.started);
  EXPECT_GE(all, 2 * alone - kRounding) << "the device is never anybody's twice";
  EXPECT_GT(length(mine_done) + length(other_done), 2 * alone + kTimeSlice) << "one waited for the other";
}

TEST_P(OverrunTest, HostThatCannotKeepUpSaysSo) {
  auto done = wait_for(work(0, kWave, 20'000));
  EXPECT_GT(done.overrun_ns, 0u);
  EXPECT_LE(overrun(done), length(done) + kRounding);
}

}  // namespace
}  // namespace heddle::conformance
