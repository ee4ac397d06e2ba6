#include "device/software/model/occupancy.h"

#include <gtest/gtest.h>

#include <limits>

namespace heddle::software {
namespace {

DeviceModel v100() {
  return *device_preset("V100");
}

uint32_t blocks_per_sm(const BlockNeed& need) {
  return fitting(whole_sm(v100()), share_of(need, v100()));
}

// Expected figures are those of CUDA's occupancy calculator for compute capability 7.0.
TEST(Occupancy, SmallBlocksAreLimitedByBlockSlots) {
  EXPECT_EQ(blocks_per_sm({32, 16, 0}), 32u);
}

TEST(Occupancy, LargeBlocksAreLimitedByWarps) {
  EXPECT_EQ(blocks_per_sm({1024, 32, 0}), 2u);
  EXPECT_EQ(blocks_per_sm({256, 32, 0}), 8u);
}

TEST(Occupancy, RegistersLimit) {
  EXPECT_EQ(blocks_per_sm({256, 64, 0}), 4u);
  EXPECT_EQ(blocks_per_sm({1024, 65, 0}), 0u);
}

TEST(Occupancy, SharedMemoryLimits) {
  EXPECT_EQ(blocks_per_sm({128, 16, 48 * 1024}), 2u);
  EXPECT_EQ(blocks_per_sm({128, 16, 96 * 1024 + 1}), 0u);
}

TEST(Occupancy, PartialWarpsCountAsWhole) {
  EXPECT_EQ(share_of({33, 16, 0}, v100()).warps, 2u);
}

TEST(Occupancy, AbsurdNeedsFitNowhere) {
  BlockNeed huge{std::numeric_limits<uint64_t>::max() / 2, 255, std::numeric_limits<uint64_t>::max() / 2};
  EXPECT_EQ(blocks_per_sm(huge), 0u);
}

TEST(Occupancy, SharesNeverFallBelowZero) {
  EXPECT_EQ(without({1, 2, 3, 4}, {2, 1, 4, 4}), (SmShare{0, 1, 0, 0}));
}

}  // namespace
}  // namespace heddle::software
