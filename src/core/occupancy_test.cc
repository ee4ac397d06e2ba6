#include "core/occupancy.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/units.h"

namespace heddle {
namespace {

const DeviceModel kP100 = *device_preset("P100"), kV100 = *device_preset("V100"), kH200 = *device_preset("H200");

// Expected figures are those of CUDA's occupancy calculator: for compute capability 7.0 first.
TEST(Occupancy, SmallBlocksAreLimitedByBlockSlots) {
  EXPECT_EQ(blocks_per_sm({32, 16, 0}, kV100), 32u);
}

TEST(Occupancy, LargeBlocksAreLimitedByWarps) {
  EXPECT_EQ(blocks_per_sm({1024, 32, 0}, kV100), 2u);
  EXPECT_EQ(blocks_per_sm({256, 32, 0}, kV100), 8u);
  EXPECT_EQ(blocks_per_sm({33, 16, 0}, kV100), 32u);
  EXPECT_EQ(blocks_per_sm({65, 16, 0}, kV100), 21u) << "a third warp for one thread";
}

TEST(Occupancy, RegistersLimit) {
  EXPECT_EQ(blocks_per_sm({256, 64, 0}, kV100), 4u);
  EXPECT_EQ(blocks_per_sm({1024, 65, 0}, kV100), 0u);
  EXPECT_EQ(blocks_per_sm({256, 33, 0}, kV100), 6u) << "33 registers cost 40: 48 warps";
  EXPECT_EQ(blocks_per_sm({96, 40, 0}, kV100), 16u) << "each of four register files holds 12 warps, not 12.8";
  EXPECT_EQ(blocks_per_sm({128, 255, 0}, kV100), 2u);
  EXPECT_EQ(blocks_per_sm({256, 0, 0}, kV100), 8u) << "unknown";
}

// What a program may launch, what it is told, and what an SM holds say the same.
TEST(Occupancy, ABlockWhoseRegistersFitIsHeld) {
  for (const DeviceModel& model : {kP100, kV100, kH200}) {
    for (uint32_t threads = 1; threads <= 1024; ++threads) {
      for (uint32_t registers = 1; registers <= 255; ++registers) {
        const bool fits = registers_fit(registers, threads, model);
        ASSERT_EQ(fits, blocks_per_sm({threads, registers, 0}, model) > 0) << threads << " by " << registers;
        ASSERT_EQ(fits, registers <= most_registers(threads, model)) << threads << " by " << registers;
        ASSERT_EQ(fits, threads <= most_threads(registers, model)) << threads << " by " << registers;
      }
    }
  }
  EXPECT_FALSE(registers_fit(80, 800, kV100)) << "25 warps: seven in one of the files, which hold six";
  EXPECT_EQ(most_threads(80, kV100), 768u);
  EXPECT_EQ(most_registers(800, kV100), 72u);
  EXPECT_EQ(most_threads(0, kV100), 1024u);
}

TEST(Occupancy, SharedMemoryLimits) {
  EXPECT_EQ(blocks_per_sm({128, 16, 48 * kKiB}, kV100), 2u);
  EXPECT_EQ(blocks_per_sm({128, 16, 96 * kKiB + 1}, kV100), 0u);
  EXPECT_EQ(blocks_per_sm({64, 0, 30000}, kP100), 2u);
}

// From compute capability 8.0 on the system takes 1 KiB for each block.
TEST(Occupancy, WhatTheSystemReservesCounts) {
  EXPECT_EQ(blocks_per_sm({64, 16, 57 * kKiB}, kH200), 3u) << "228 KiB less 1 for each block";
  EXPECT_EQ(blocks_per_sm({64, 16, 56 * kKiB}, kH200), 4u);
  EXPECT_EQ(blocks_per_sm({64, 16, 227 * kKiB}, kH200), 1u);
}

TEST(Occupancy, ImpossibleBlocksFitNowhere) {
  EXPECT_EQ(blocks_per_sm({2048, 0, 0}, kP100), 0u);
  EXPECT_EQ(blocks_per_sm({32, 0, 100000}, kP100), 0u);
  EXPECT_EQ(blocks_per_sm({1024, 255, 0}, kP100), 0u);
  const BlockNeed huge{std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint32_t>::max(),
                       std::numeric_limits<uint64_t>::max()};
  const SmModel sm = sm_of(kV100);
  EXPECT_EQ(fitting(sm.whole, share_of(huge, sm)), 0u);
}

// What policies and the software device add up, block by block, ends where the calculator says.
TEST(Occupancy, SharesAddUpToAsManyBlocks) {
  const SmModel sm = sm_of(kH200);
  for (uint64_t threads = 32; threads <= 1024; threads += 32) {
    for (uint32_t registers = 16; registers <= 255; registers += 7) {
      const SmShare block = share_of({threads, registers, 1000}, sm);
      SmShare left = sm.whole;
      uint32_t count = 0;
      for (; fitting(left, block) > 0; ++count) left = without(left, block);
      ASSERT_EQ(count, fitting(sm.whole, block)) << threads << " threads, " << registers << " registers";
    }
  }
}

TEST(Occupancy, SharesNeverFallBelowZero) {
  EXPECT_EQ(without({1, 2, 3, 4}, {2, 1, 4, 4}), (SmShare{0, 1, 0, 0}));
}

TEST(Occupancy, SharedMemoryLeftForEachBlock) {
  EXPECT_EQ(shared_bytes_left({64, 0, 1024}, 2, kP100), 32768u - 1024);
  EXPECT_EQ(shared_bytes_left({64, 0, 1024}, 1, kP100), 49152u - 1024) << "a block's own limit";
  EXPECT_EQ(shared_bytes_left({64, 0, 0}, 1, kH200), 227 * kKiB);
  EXPECT_EQ(shared_bytes_left({64, 0, 0}, 2, kH200), 113 * kKiB);
}

}  // namespace
}  // namespace heddle
