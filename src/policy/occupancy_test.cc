#include "policy/occupancy.h"

#include <gtest/gtest.h>

#include "policy/test_pool.h"

namespace heddle::policy {
namespace {

TEST(Resident, SmallGridCountsAsItIs) {
  EXPECT_EQ(resident(grid(10), p100(0)).blocks, 10u);
  EXPECT_EQ(resident(grid(10), p100(0)).warps, 80u);
}

TEST(Resident, LargeGridCountsAsWhatTheDeviceHolds) {
  EXPECT_EQ(resident(grid(1'000'000), p100(0)).blocks, 56u * 8);  // 64 warps an SM, 8 a block
  EXPECT_EQ(resident(grid(UINT64_MAX), p100(0)).warps, 56u * 64);
  EXPECT_EQ(resident(grid(1'000'000), p100(0)).warps, 3584u);
}

TEST(Resident, EachResourceCanBeTheLimit) {
  const auto at_once = [](ComputeNeed need) { return resident(need, p100(0)).blocks / 56; };
  EXPECT_EQ(at_once({1'000'000, 32, 16, {}}), 32u);               // blocks
  EXPECT_EQ(at_once({1'000'000, 1024, 16, {}}), 2u);              // warps
  EXPECT_EQ(at_once({1'000'000, 256, 128, {}}), 2u);              // registers: 65536 / (256 * 128)
  EXPECT_EQ(at_once({1'000'000, 32, 16, Bytes{20 * kKiB}}), 3u);  // shared memory
}

TEST(Resident, PartialWarpTakesAWholeOne) {
  EXPECT_EQ(resident({1, 33, 0, {}}, p100(0)).warps, 2u);
}

TEST(Resident, BlockLargerThanAnSmLoadsNothing) {
  EXPECT_EQ(resident({1, 2049, 0, {}}, p100(0)).blocks, 0u);
  EXPECT_EQ(resident({1, 1024, 65, {}}, p100(0)).blocks, 0u);
  EXPECT_EQ(resident({1, 32, 0, Bytes{65 * kKiB}}, p100(0)).blocks, 0u);
  EXPECT_EQ(resident({UINT64_MAX, UINT32_MAX, UINT32_MAX, Bytes{UINT64_MAX}}, p100(0)).blocks, 0u);
}

}  // namespace
}  // namespace heddle::policy
