#include "client/device/lazy_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::client {
namespace {

using protocol::RecordType;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Writes down what is said.
class Listener : public TaskVoice {
 public:
  Status await_end() override {
    said.push_back("await end");
    return {};
  }
  Result<uint64_t> declare(const Segment& segment, bool answer) override {
    if (refuse_next) return fail(ErrorCode::kOutOfMemory, "no memory");
    said.push_back(stringf("declare %lx%s", static_cast<unsigned long>(segment.address), answer ? " and wait" : ""));
    return ++last_number;
  }
  Status begin(uint64_t serial, const protocol::ComputeNeed& need) override {
    said.push_back(stringf("begin %lu for %lu blocks", static_cast<unsigned long>(serial),
                           static_cast<unsigned long>(need.blocks)));
    return {};
  }
  Status grow(const protocol::ComputeNeed& need) override {
    said.push_back(stringf("grow to %lu blocks", static_cast<unsigned long>(need.blocks)));
    return {};
  }
  Result<uint64_t> append(RecordType type, uint64_t a) override {
    const char* name = type == RecordType::kNeed ? "need" : type == RecordType::kFree ? "free" : "end";
    said.push_back(stringf("%s %lu", name, static_cast<unsigned long>(a)));
    return ++last_sequence;
  }
  void withdrawn(const Segment& segment) override {
    said.push_back(stringf("withdraw %lx", static_cast<unsigned long>(segment.address)));
  }
  void retire(Segment* segment, uint64_t) override {
    said.push_back(stringf("retire %lx", static_cast<unsigned long>(segment->address)));
  }

  std::vector<std::string> take() { return std::exchange(said, {}); }

  std::vector<std::string> said;
  uint64_t last_number = 0, last_sequence = 0;
  bool refuse_next = false;
};

class LazyTaskTest : public ::testing::Test {
 protected:
  Segment one_{.address = 0xa, .bytes = kSegmentBytes}, two_{.address = 0xb, .bytes = kSegmentBytes};
  Listener listener_;
  LazyTask task_{listener_, 0};
};

TEST_F(LazyTaskTest, NothingIsSaidBeforeTheTaskBegins) {
  ASSERT_TRUE(task_.created(&one_, false));
  ASSERT_TRUE(task_.before_record());
  EXPECT_THAT(listener_.take(), IsEmpty());
}

TEST_F(LazyTaskTest, FirstLaunchDeclaresEverythingThenBegins) {
  ASSERT_TRUE(task_.created(&one_, false));
  ASSERT_TRUE(task_.created(&two_, false));
  ASSERT_TRUE(task_.launch(100, 256, 32, 0));
  ASSERT_TRUE(task_.begin());
  EXPECT_THAT(listener_.take(), ElementsAre("declare a", "declare b", "begin 1 for 100 blocks"));
}

TEST_F(LazyTaskTest, LaterSegmentIsDeclaredBeforeTheNextRecord) {
  ASSERT_TRUE(task_.begin());
  ASSERT_TRUE(task_.created(&one_, false));
  listener_.take();
  ASSERT_TRUE(task_.before_record());
  EXPECT_THAT(listener_.take(), ElementsAre("declare a", "need 1"));
  ASSERT_TRUE(task_.before_record());
  EXPECT_THAT(listener_.take(), IsEmpty());
}

TEST_F(LazyTaskTest, OnlyALargerLaunchIsToldOf) {
  ASSERT_TRUE(task_.launch(10, 64, 0, 0));
  ASSERT_TRUE(task_.begin());
  listener_.take();
  ASSERT_TRUE(task_.launch(10, 64, 0, 0));
  ASSERT_TRUE(task_.launch(5, 128, 0, 0));
  EXPECT_THAT(listener_.take(), IsEmpty());
  ASSERT_TRUE(task_.launch(11, 64, 0, 0));
  EXPECT_THAT(listener_.take(), ElementsAre("grow to 11 blocks"));
}

TEST_F(LazyTaskTest, FreeOfTheLastSegmentEndsTheTask) {
  ASSERT_TRUE(task_.created(&one_, false));
  ASSERT_TRUE(task_.begin());
  listener_.take();
  ASSERT_TRUE(task_.emptied(&one_, true));
  ASSERT_TRUE(task_.all_freed());
  EXPECT_THAT(listener_.take(), ElementsAre("free 1", "retire a", "end 1"));
  EXPECT_FALSE(task_.begun());
}

TEST_F(LazyTaskTest, NextTaskAwaitsTheEndOfTheOneBefore) {
  ASSERT_TRUE(task_.begin());
  ASSERT_TRUE(task_.all_freed());
  ASSERT_TRUE(task_.created(&one_, false));
  listener_.take();
  ASSERT_TRUE(task_.begin());
  EXPECT_THAT(listener_.take(), ElementsAre("await end", "declare a", "begin 2 for 0 blocks"));
}

TEST_F(LazyTaskTest, UntouchedSegmentFreedBeforeTheTaskIsForgotten) {
  ASSERT_TRUE(task_.created(&one_, false));
  ASSERT_TRUE(task_.emptied(&one_, false));
  EXPECT_THAT(listener_.take(), ElementsAre("retire a"));
  ASSERT_TRUE(task_.begin());
  EXPECT_THAT(listener_.take(), ElementsAre("begin 1 for 0 blocks"));
}

TEST_F(LazyTaskTest, TouchedSegmentFreedBeforeTheTaskIsDeclaredAllTheSame) {
  ASSERT_TRUE(task_.created(&one_, false));
  ASSERT_TRUE(task_.emptied(&one_, true));
  ASSERT_TRUE(task_.all_freed()) << "no task to end";
  EXPECT_THAT(listener_.take(), IsEmpty());
  ASSERT_TRUE(task_.begin());
  EXPECT_THAT(listener_.take(), ElementsAre("declare a", "begin 1 for 0 blocks", "free 1", "retire a"));
}

TEST_F(LazyTaskTest, UndeclaredSegmentFreedWhileATaskRunsIsForgotten) {
  ASSERT_TRUE(task_.begin());
  ASSERT_TRUE(task_.created(&one_, false));
  listener_.take();
  ASSERT_TRUE(task_.emptied(&one_, true)) << "by records of others: its own would have declared it";
  EXPECT_THAT(listener_.take(), ElementsAre("retire a"));
}

TEST_F(LazyTaskTest, MemoryObliviousPolicyIsAskedAtOnce) {
  ASSERT_TRUE(task_.created(&one_, true));
  EXPECT_THAT(listener_.take(), ElementsAre("declare a and wait"));
  ASSERT_TRUE(task_.begin());
  EXPECT_THAT(listener_.take(), ElementsAre("begin 1 for 0 blocks"));
  ASSERT_TRUE(task_.created(&two_, true));
  EXPECT_THAT(listener_.take(), ElementsAre("declare b and wait", "need 2"));
}

TEST_F(LazyTaskTest, FreeOfBoundMemoryReachesHeddledThoughNothingRan) {
  ASSERT_TRUE(task_.created(&one_, true));
  listener_.take();
  ASSERT_TRUE(task_.emptied(&one_, false, true));
  ASSERT_TRUE(task_.all_freed());
  EXPECT_THAT(listener_.take(), ElementsAre("begin 1 for 0 blocks", "free 1", "retire a", "end 1"));
}

TEST_F(LazyTaskTest, WhatWasAllocatedAnewBeforeTheWorkerEndedTheTaskGoesWithTheNext) {
  one_.number = 1;
  ASSERT_TRUE(task_.launch(7, 32, 0, 0));
  ASSERT_TRUE(task_.begin());
  task_.rest();
  EXPECT_TRUE(task_.begun());
  ASSERT_TRUE(task_.created(&two_, false));
  listener_.take();
  task_.was_ended({&one_}, {});
  EXPECT_FALSE(task_.begun());
  EXPECT_FALSE(task_.resting());
  ASSERT_TRUE(task_.begin());
  EXPECT_THAT(listener_.take(), ElementsAre("await end", "declare b", "begin 2 for 0 blocks"));
}

TEST_F(LazyTaskTest, WhatHeddledStillHasOfATaskThatTheWorkerEndedIsFreedWithTheNext) {
  one_.number = 1;
  two_.number = 2;
  ASSERT_TRUE(task_.begin());
  task_.rest();
  task_.was_ended({&one_}, {&two_});
  ASSERT_TRUE(task_.emptied(&one_, false));
  listener_.take();
  ASSERT_TRUE(task_.begin());
  EXPECT_THAT(listener_.take(),
              ElementsAre("await end", "begin 2 for 0 blocks", "free 2", "retire b", "free 1", "retire a"));
}

TEST_F(LazyTaskTest, ATaskApartThatIsDeclinedWithdrawsWhatTheOneBeforeHadDeclared) {
  one_.number = 1;
  ASSERT_TRUE(task_.begin());
  task_.rest();
  task_.was_ended({&one_}, {});
  ASSERT_TRUE(task_.offer());
  task_.declined();
  EXPECT_EQ(one_.number, 0u);
}

TEST_F(LazyTaskTest, RefusedMemoryIsTheCallersAnswer) {
  listener_.refuse_next = true;
  const Status created = task_.created(&one_, true);
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace heddle::client
