#include "device/software/streams.h"

#include <gtest/gtest.h>

namespace heddle::software {
namespace {

TimePoint at(int64_t ns) {
  return TimePoint(Duration(ns));
}

class StreamTableTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(table_.create(1, false, 0));
    ASSERT_TRUE(table_.create(2, false, 0));
    ASSERT_TRUE(table_.create(3, true, 0));
  }
  Operation* add(device::StreamIndex stream, device::Tag tag, TimePoint enqueued = {}) {
    auto operation = std::make_unique<Operation>();
    operation->tag = tag;
    operation->enqueued = enqueued;
    Operation* added = operation.get();
    table_.append(**table_.find(stream), std::move(operation));
    return added;
  }
  std::vector<device::Tag> ready() {
    std::vector<device::Tag> tags;
    for (Operation* operation : table_.take_ready()) tags.push_back(operation->tag);
    return tags;
  }
  void end(Operation* operation, TimePoint ended = {}) {
    operation->ended = ended;
    table_.completed(*operation);
    table_.retire(*operation);
  }
  using Tags = std::vector<device::Tag>;
  StreamTable table_;
};

TEST_F(StreamTableTest, OperationIsReadyOnce) {
  add(1, 10);
  EXPECT_EQ(ready(), Tags{10});
  EXPECT_EQ(ready(), Tags{});
}

TEST_F(StreamTableTest, StreamRunsOneOperationAtATime) {
  auto* first = add(1, 10);
  add(1, 11);
  EXPECT_EQ(ready(), Tags{10});
  end(first);
  EXPECT_EQ(ready(), Tags{11});
}

TEST_F(StreamTableTest, LegacyStreamWaitsForEarlierWorkOnly) {
  auto* earlier = add(1, 10);
  add(0, 20);
  EXPECT_EQ(ready(), Tags{10});
  add(2, 11);
  EXPECT_EQ(ready(), Tags{}) << "later work waits for the legacy stream";
  end(earlier);
  EXPECT_EQ(ready(), Tags{20});
}

TEST_F(StreamTableTest, WorkThatWasThereBeforeRunsBesideALegacyOperationThatWaits) {
  auto* first = add(1, 10);
  add(2, 11);
  add(0, 20);
  EXPECT_EQ(ready(), (Tags{10, 11}));
  end(first);
  EXPECT_EQ(ready(), Tags{});
}

TEST_F(StreamTableTest, NonBlockingStreamHeedsNobody) {
  add(0, 20);
  add(3, 30);
  EXPECT_EQ(ready(), (Tags{20, 30}));
}

TEST_F(StreamTableTest, ReadyTimeIsThatOfTheLastThingWaitedFor) {
  auto* first = add(1, 10, at(1));
  Operation* legacy = add(0, 20, at(2));
  ready();
  end(first, at(7));
  ready();
  EXPECT_EQ(legacy->ready, at(7));
  Operation* after = add(2, 11, at(3));
  end(legacy, at(9));
  ready();
  EXPECT_EQ(after->ready, at(9));
}

TEST_F(StreamTableTest, WaitEndsWithItsTag) {
  auto* awaited = add(1, 10);
  Operation* wait = add(3, 30);
  wait->work = WaitWork{10};
  EXPECT_EQ(ready(), Tags{10});
  end(awaited, at(5));
  EXPECT_EQ(ready(), Tags{30});
  EXPECT_EQ(wait->ready, at(5));
}

TEST_F(StreamTableTest, DestroyedStreamFinishesItsQueue) {
  auto* first = add(1, 10);
  auto* second = add(1, 11);
  EXPECT_EQ(ready(), Tags{10});
  ASSERT_TRUE(table_.destroy(1));
  EXPECT_FALSE(table_.find(1));
  end(first);
  EXPECT_EQ(ready(), Tags{11});
  end(second);
  EXPECT_EQ(ready(), Tags{});
  EXPECT_TRUE(table_.create(1, false, 0));
}

}  // namespace
}  // namespace heddle::software
