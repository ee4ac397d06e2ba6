#include <algorithm>

#include "conformance_test.h"

namespace heddle::conformance {
namespace {

// A step takes a moment, so that what does not wait for it would overtake it.
constexpr int kSteps = 20'000;

unsigned after(unsigned value, int launches, int steps = kSteps) {
  for (int i = 0; i < launches * steps; ++i) value = value * 3 + 1;
  return value;
}

class StreamsTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    memory_ = map(4096);
    ASSERT_TRUE(context().create_stream(1, false, 0));
    ASSERT_TRUE(context().create_stream(2, false, 0));
    ASSERT_TRUE(context().create_stream(3, true, 0));
  }
  uint64_t word(int index) { return memory_ + index * sizeof(unsigned); }
  device::Tag step(device::StreamIndex stream, int index) {
    return launch(stream, "step_value", {1}, {1}, Parameters(word(index), kSteps));
  }
  device::Tag copy_word(device::StreamIndex stream, int from, int to) {
    return launch(stream, "copy_value", {1}, {1}, Parameters(word(from), word(to)));
  }
  device::Tag wait(device::StreamIndex stream, device::Tag awaited) {
    device::Tag tag = next_tag();
    EXPECT_TRUE(context().wait(stream, awaited, tag));
    return tag;
  }
  device::Tag hold(device::StreamIndex stream) {
    device::Tag tag = next_tag();
    EXPECT_TRUE(context().hold(stream, tag));
    return tag;
  }
  bool came_before(device::Tag first, device::Tag second) {
    const auto seen = order();
    auto at = [&](device::Tag tag) { return std::find(seen.begin(), seen.end(), tag); };
    return at(first) < at(second) && at(second) != seen.end();
  }
  unsigned value(int index) { return read<unsigned>(word(index), 1)[0]; }

  uint64_t memory_ = 0;
};
HEDDLE_CONFORMANCE_SUITE(StreamsTest);

TEST_P(StreamsTest, MarkOnAnIdleStreamCompletesAtOnce) {
  const device::Tag marked = mark(1);
  if (GetParam().apart) wait_for(marked);
  EXPECT_TRUE(completed(marked));
}

TEST_P(StreamsTest, OperationsOfAStreamRunInOrder) {
  std::vector<device::Tag> tags;
  for (int i = 0; i < 5; ++i) tags.push_back(step(1, 0));
  unsigned result = 0;
  tags.push_back(to_host(1, &result, word(0), sizeof result));
  tags.push_back(mark(1));
  wait_for(tags.back());
  EXPECT_EQ(result, after(0, 5));
  EXPECT_EQ(order(), tags);
}

TEST_P(StreamsTest, TimesFollowTheOrder) {
  auto first = wait_for(step(1, 0)), second = wait_for(step(1, 0));
  EXPECT_LE(first.started, first.ended);
  EXPECT_LE(first.ended, second.started);
  EXPECT_LE(second.started, second.ended);
}

TEST_P(StreamsTest, StreamsRunSideBySide) {
  uint64_t flag = word(0);
  launch(1, "wait_for_flag", {1}, {1}, Parameters(flag));
  auto copied = copy_word(2, 2, 3);
  wait_for(copied);
  launch(3, "raise_flag", {1}, {1}, Parameters(flag));
  finish();
}

TEST_P(StreamsTest, LegacyStreamWaitsForBlockingStreams) {
  step(1, 0);
  step(2, 1);
  copy_word(0, 0, 2);
  copy_word(0, 1, 3);
  finish();
  EXPECT_EQ(value(2), after(0, 1));
  EXPECT_EQ(value(3), after(0, 1));
}

TEST_P(StreamsTest, BlockingStreamsWaitForTheLegacyStream) {
  step(0, 0);
  copy_word(1, 0, 1);
  copy_word(2, 0, 2);
  finish();
  EXPECT_EQ(value(1), after(0, 1));
  EXPECT_EQ(value(2), after(0, 1));
}

TEST_P(StreamsTest, NonBlockingStreamPassesTheLegacyStream) {
  auto held = hold(0);
  wait_for(held);
  EXPECT_EQ(wait_for(mark(3)).cuda_error, 0u);
  auto blocked = mark(1);
  EXPECT_FALSE(completed(blocked));
  EXPECT_TRUE(context().release(held));
  wait_for(blocked);
}

TEST_P(StreamsTest, WaitHoldsAStreamBackUntilTheTagHasCompleted) {
  auto stepped = step(3, 0);
  auto waited = wait(1, stepped);
  copy_word(1, 0, 1);
  finish();
  EXPECT_TRUE(came_before(stepped, waited));
  EXPECT_EQ(value(1), after(0, 1));
}

TEST_P(StreamsTest, WaitForWhatHasCompletedPasses) {
  auto stepped = step(1, 0);
  wait_for(stepped);
  wait_for(wait(2, stepped));
}

TEST_P(StreamsTest, SeveralStreamsWaitForOneTag) {
  auto held = hold(3);
  auto gate = mark(3);
  auto first = wait(1, gate), second = wait(2, gate);
  EXPECT_FALSE(completed(first));
  wait_for(held);
  EXPECT_TRUE(context().release(held));
  wait_for(first);
  wait_for(second);
}

TEST_P(StreamsTest, HeldStreamGoesOnAfterItsRelease) {
  step(1, 0);
  auto held = hold(1);
  auto copied = copy_word(1, 1, 2);
  wait_for(held);
  const unsigned changed = 99;
  wait_for(to_device(3, word(1), &changed, sizeof changed));
  EXPECT_FALSE(completed(copied));
  EXPECT_TRUE(context().release(held));
  finish();
  EXPECT_EQ(value(2), 99u);
}

// The stream has arrived at the hold long before: those that wait for it go on at its release all the same.
TEST_P(StreamsTest, WaitsForAHoldPassAtItsRelease) {
  const auto held = hold(3);
  wait_for(held);
  const auto waited = wait(1, held);
  const auto copied = copy_word(1, 1, 2), behind = mark(1), legacy = mark(0);
  const unsigned changed = 99;
  ASSERT_TRUE(context().create_stream(4, true, 0));
  wait_for(to_device(4, word(1), &changed, sizeof changed));
  for (const auto tag : {waited, copied, behind, legacy}) EXPECT_FALSE(completed(tag));
  EXPECT_TRUE(context().release(held));
  wait_for(behind);
  finish();
  EXPECT_EQ(value(2), 99u);
}

TEST_P(StreamsTest, AWaitThatWasHandedOverBeforeTheStreamArrivedAtTheHoldPassesAtItsReleaseToo) {
  const auto gate = hold(2);
  wait_for(gate);
  const auto before = wait(3, gate);
  const auto held = hold(3);
  const auto waited = wait(1, held);
  EXPECT_FALSE(completed(held));
  EXPECT_TRUE(context().release(gate));
  wait_for(before);
  wait_for(held);
  EXPECT_FALSE(completed(waited));
  EXPECT_TRUE(context().release(held));
  wait_for(waited);
}

TEST_P(StreamsTest, ReleaseOfWhatIsNotHeldIsAnError) {
  EXPECT_FALSE(context().release(12345));
}

TEST_P(StreamsTest, DestroyedStreamFinishesItsWork) {
  auto stepped = step(1, 0);
  EXPECT_TRUE(context().destroy_stream(1));
  EXPECT_FALSE(context().mark(1, next_tag()));
  EXPECT_EQ(wait_for(stepped).cuda_error, 0u);
  EXPECT_TRUE(context().create_stream(1, false, 0));
  wait_for(mark(1));
}

TEST_P(StreamsTest, UnknownStreamsAreRefused) {
  EXPECT_FALSE(context().mark(77, next_tag()));
  EXPECT_FALSE(context().destroy_stream(77));
  EXPECT_FALSE(context().destroy_stream(0));
  EXPECT_FALSE(context().create_stream(1, false, 0));
}

TEST_P(StreamsTest, WakeEndsAWaitForCompletions) {
  stop_taking();
  context().wake();
  device::Completion none[1];
  EXPECT_EQ(context().completions(none, std::chrono::hours(1)), 0u);
}

TEST_P(StreamsTest, ManyStreamsWithManyLaunchesLoseNothing) {
  constexpr int kStreams = 20, kLaunches = 30;
  for (int i = 0; i < kStreams; ++i) ASSERT_TRUE(context().create_stream(100 + i, i % 2 == 0, 0));
  for (int round = 0; round < kLaunches; ++round) {
    for (int i = 0; i < kStreams; ++i) launch(100 + i, "step_value", {1}, {1}, Parameters(word(i), 10));
  }
  for (int i = 0; i < kStreams; ++i) wait_for(mark(100 + i));
  for (int i = 0; i < kStreams; ++i) EXPECT_EQ(value(i), after(0, kLaunches, 10)) << "stream " << i;
}

}  // namespace
}  // namespace heddle::conformance
