#include <numeric>

#include "conformance_test.h"

namespace heddle::conformance {
namespace {

class LaunchTest : public ConformanceTest {};
HEDDLE_CONFORMANCE_SUITE(LaunchTest);

TEST_P(LaunchTest, AddsTwoVectors) {
  constexpr int kCount = 10'000;
  std::vector<float> a(kCount), b(kCount), expected(kCount);
  for (int i = 0; i < kCount; ++i) expected[i] = (a[i] = static_cast<float>(i)) + (b[i] = 0.25f * i);
  uint64_t memory = map(3 * kCount * sizeof(float));
  uint64_t at_b = memory + kCount * sizeof(float), at_sum = at_b + kCount * sizeof(float);
  write(memory, a);
  write(at_b, b);
  launch(0, "add", {(kCount + 255) / 256}, {256}, Parameters(memory, at_b, at_sum, kCount));
  finish();
  EXPECT_EQ(read<float>(at_sum, kCount), expected);
}

TEST_P(LaunchTest, EveryThreadOfEveryBlockRunsOnce) {
  device::Dim3 grid{5, 4, 3}, block{7, 3, 2};
  uint64_t threads = grid.count() * block.count();
  uint64_t memory = map(threads * sizeof(unsigned));
  wait_for(fill(0, memory, 0xff, threads * sizeof(unsigned)));
  launch(0, "positions", grid, block, Parameters(memory));
  finish();
  std::vector<unsigned> expected(threads);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(read<unsigned>(memory, threads), expected);
}

TEST_P(LaunchTest, BlocksUseDynamicSharedMemory) {
  constexpr int kBlocks = 20, kThreads = 128;
  std::vector<int> in(kBlocks * kThreads);
  std::iota(in.begin(), in.end(), 0);
  uint64_t memory = map(in.size() * sizeof(int)), sums = map(kBlocks * sizeof(int));
  write(memory, in);
  launch(0, "block_sums", {kBlocks}, {kThreads}, Parameters(memory, sums), kThreads * sizeof(int));
  finish();
  std::vector<int> expected(kBlocks);
  for (int i = 0; i < kBlocks; ++i)
    expected[i] = std::accumulate(in.begin() + i * kThreads, in.begin() + (i + 1) * kThreads, 0);
  EXPECT_EQ(read<int>(sums, kBlocks), expected);
}

}  // namespace
}  // namespace heddle::conformance
