// What a program has freed and its worker still has: given back when heddled asks for it, or when the program is
// silent.

#include "worker/idle.h"

#include <gmock/gmock.h>

#include "worker/testing/session_harness.h"

namespace heddle::worker {
namespace {

using protocol::IdleTable;
using protocol::RecordType;
using testing::Contains;
using testing::UnorderedElementsAre;

constexpr uint64_t kEarlier = kTestBase, kLater = kTestBase + kSegmentBytes;

struct IdleTest : SessionHarness {
  void SetUp() override {
    SessionHarness::SetUp();
    module_info.kernels.resize(1);
    module_info.kernels[0].name = "nothing";
    prepare_context = [](FakeContext& device) { device.kernels["nothing"] = [](auto) { return 0u; }; };
    start_worker();
    send_module(1);
    map(1, kEarlier);
    map(2, kLater);
    simple(RecordType::kNeed, 0, 1);
    EXPECT_TRUE(completes(simple(RecordType::kNeed, 0, 2)));
  }

  // The program's side, and heddled's.
  void offer(size_t slot, uint64_t number) { header().idle.segments[slot] = number; }
  void offer_task(uint64_t serial = kTaskSerial) { header().idle.task = IdleTable::offered_task(serial); }
  void ask() {
    ++header().reclaims;
    protocol::ring_bell(header().to_worker);
  }
  // The numbers of all segments that were given back; 0: the answer to ask().
  std::vector<uint64_t> freed() {
    told<protocol::SegmentFreed>();
    std::vector<uint64_t> numbers;
    for (const auto& message : messages) {
      if (const auto* freed = std::get_if<protocol::SegmentFreed>(&message)) numbers.push_back(freed->number);
    }
    return numbers;
  }
  bool answers() {
    return eventually([&] { return testing::Value(freed(), Contains(0u)); });
  }
};

TEST_F(IdleTest, WhatIsOfferedGoesBackWhenHeddledAsks) {
  offer(5, 2);
  ask();
  ASSERT_TRUE(answers());
  EXPECT_THAT(freed(), UnorderedElementsAre(2, 0));
  EXPECT_THAT(context->mapped(), UnorderedElementsAre(kEarlier));
  EXPECT_EQ(header().idle.segments[5].load(), 2 | IdleTable::kSegmentTaken);
  EXPECT_EQ(told<protocol::TaskEnded>(), 0u);
  EXPECT_TRUE(completes(marker()));
}

TEST_F(IdleTest, WhatTheProgramHasTakenBackStays) {
  offer(0, 1);
  offer(1, 2);
  uint64_t offered = 1;
  ASSERT_TRUE(header().idle.segments[0].compare_exchange_strong(offered, 0));
  ask();
  ASSERT_TRUE(answers());
  EXPECT_THAT(freed(), UnorderedElementsAre(2, 0));
}

TEST_F(IdleTest, ATaskOfWhichNothingIsLeftEndsWithoutARecord) {
  offer(0, 1);
  offer_task();
  ask();
  ASSERT_TRUE(answers());
  EXPECT_THAT(freed(), UnorderedElementsAre(1, 0));
  ASSERT_EQ(told<protocol::TaskEnded>(), 1u);
  EXPECT_EQ(last<protocol::TaskEnded>().serial, kTaskSerial);
  EXPECT_EQ(last<protocol::TaskEnded>().unmapped, 1u);
  EXPECT_EQ(header().idle.task.load(), IdleTable::taken_task(kTaskSerial));
  EXPECT_TRUE(context->mapped().empty()) << "what was allocated anew comes with the next task";
  // What follows is the next task's.
  const uint64_t next = marker();
  next_task(8);
  proceed();
  EXPECT_TRUE(completes(next));
}

TEST_F(IdleTest, ATaskThatGoesOnIsNotEnded) {
  offer_task();
  uint64_t offered = IdleTable::offered_task(kTaskSerial);
  ASSERT_TRUE(header().idle.task.compare_exchange_strong(offered, 0));
  ask();
  ASSERT_TRUE(answers());
  EXPECT_EQ(told<protocol::TaskEnded>(), 0u);
  EXPECT_TRUE(completes(marker()));
}

TEST_F(IdleTest, AnotherTasksOfferIsNone) {
  offer_task(kTaskSerial + 1);
  ask();
  ASSERT_TRUE(answers());
  EXPECT_EQ(told<protocol::TaskEnded>(), 0u);
}

TEST_F(IdleTest, NothingIsUnmappedUnderWorkThatWasIssuedBefore) {
  context->pause(0);
  const uint64_t work = launch(0, 0);
  ASSERT_TRUE(eventually([&] { return !context->handed_over().empty(); }));
  offer(0, 1);
  ask();
  ASSERT_TRUE(eventually([&] { return header().idle.segments[0] != 1; }));
  EXPECT_TRUE(freed().empty());
  EXPECT_THAT(context->mapped(), UnorderedElementsAre(kEarlier, kLater));
  context->resume(0);
  ASSERT_TRUE(completes(work));
  ASSERT_TRUE(answers());
  EXPECT_THAT(freed(), UnorderedElementsAre(1, 0));
}

// The program frees one buffer behind its work and offers the others: all of it is in the ring before the task may end.
TEST_F(IdleTest, WhatTheRingHoldsComesBeforeTheTasksEnd) {
  context->pause(0);
  launch(0, 0);
  simple(RecordType::kFree, 0, 2);
  offer(0, 1);
  offer_task();
  ask();
  ASSERT_TRUE(eventually([&] { return !context->handed_over().empty(); }));
  EXPECT_EQ(told<protocol::TaskEnded>(), 0u);
  context->resume(0);
  ASSERT_TRUE(answers());
  EXPECT_THAT(freed(), UnorderedElementsAre(2, 1, 0));
  EXPECT_EQ(told<protocol::TaskEnded>(), 1u);
}

TEST_F(IdleTest, AProgramThatIsSilentGivesBackWithoutBeingAsked) {
  offer(0, 1);
  offer_task();
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  EXPECT_THAT(freed(), UnorderedElementsAre(1));
}

TEST_F(IdleTest, NumbersOfNothingAreLeftAlone) {
  offer(0, 99);
  offer(1, ~0ull);
  ask();
  ASSERT_TRUE(answers());
  EXPECT_THAT(freed(), UnorderedElementsAre(0));
  EXPECT_EQ(header().idle.segments[0].load(), 99u);
  EXPECT_TRUE(completes(marker()));
}

TEST_F(IdleTest, BetweenTasksThereIsNothingToGiveBackAndHeddledIsToldSo) {
  simple(RecordType::kTaskEnd, 0, kTaskSerial);
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  ask();
  EXPECT_TRUE(answers());
}

}  // namespace
}  // namespace heddle::worker
