#include "device/software/model/pace.h"

#include <gtest/gtest.h>

#include "device/software/model/test_model.h"

namespace heddle::software {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SmShare kHalfAnSm{1, 4, 0, 0};

TEST(Pace, BlockOwnsTheShareOfItsWarps) {
  EXPECT_EQ(Pace(small_model()).block(kHalfAnSm, 1000, 0), milliseconds(2));
}

TEST(Pace, BlockThatMovesMuchIsBoundByMemory) {
  // Half of an SM's half of 2 MB/s.
  EXPECT_EQ(Pace(small_model()).block(kHalfAnSm, 1, 500'000), seconds(1));
}

TEST(Pace, BlockThatReachesTheHostIsBoundByTheBus) {
  // Half of an SM's half of 1 MB/s.
  EXPECT_EQ(Pace(small_model()).block(kHalfAnSm, 1, 500'000, 250'000), seconds(1));
  DeviceModel model = small_model();
  model.slowdown = 10;
  model.copy_slowdown = 3;
  EXPECT_EQ(Pace(model).block(kHalfAnSm, 1, 0, 250'000), seconds(10));
}

TEST(Pace, SlowdownStretchesEverythingButCopies) {
  DeviceModel model = small_model();
  model.slowdown = 10;
  EXPECT_EQ(Pace(model).block(kHalfAnSm, 1000, 0), milliseconds(20));
  EXPECT_EQ(Pace(model).launch_latency(), microseconds(50));
  EXPECT_EQ(Pace(model).memory_access(2'000'000), seconds(10));
  EXPECT_EQ(Pace(model).bus_copy(1'000'000), seconds(1));
}

TEST(Pace, CopiesHaveTheirOwnSlowdown) {
  DeviceModel model = small_model();
  model.copy_slowdown = 3;
  EXPECT_EQ(Pace(model).bus_copy(1'000'000), seconds(3));
  EXPECT_EQ(Pace(model).block(kHalfAnSm, 1000, 0), milliseconds(2));
}

TEST(Pace, ModelWithoutSlowdownKeepsNoPace) {
  DeviceModel model = small_model();
  model.slowdown = model.copy_slowdown = 0;
  EXPECT_FALSE(Pace(model).kernels());
  EXPECT_FALSE(Pace(model).copies());
  EXPECT_EQ(Pace(model).block(kHalfAnSm, 1000, 1000), Duration::zero());
}

}  // namespace
}  // namespace heddle::software
