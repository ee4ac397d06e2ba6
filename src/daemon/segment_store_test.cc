#include "daemon/segment_store.h"

#include <gtest/gtest.h>

namespace heddle::daemon {
namespace {

TEST(GivenSegment, ReturnsOnceTheWorkerHasLetGo) {
  Segment segment;
  segment.returns_to = DeviceId{0};
  SegmentStore::give(segment);
  EXPECT_TRUE(segment.given);
  SegmentStore::let_go(segment);
  EXPECT_FALSE(segment.given);
  EXPECT_TRUE(segment.returns_to);
}

// What the worker says may be from before it was given it again.
TEST(GivenSegment, NeverReturnsWhereItWasGivenTwice) {
  Segment segment;
  segment.returns_to = DeviceId{0};
  SegmentStore::give(segment);
  SegmentStore::give(segment);
  SegmentStore::let_go(segment);
  EXPECT_FALSE(segment.returns_to);
}

}  // namespace
}  // namespace heddle::daemon
