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
  // Apart: the software device reads whole rows of a warp, also where the last one's lanes are beyond the end, and
  // drops those; ThreadSanitizer would take it for a race with who writes there.
  const uint64_t stride = round_up(kCount * sizeof(float), 4096);
  uint64_t memory = map(3 * stride);
  uint64_t at_b = memory + stride, at_sum = at_b + stride;
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

TEST_P(LaunchTest, BlocksThatWaitForLaterBlocksGoOn) {
  uint64_t memory = map(4096);
  launch(0, "wait_for_last_block", {16}, {32}, Parameters(memory, memory + 64));
  finish();
  EXPECT_EQ(read<int>(memory + 64, 1)[0], 7);
}

TEST_P(LaunchTest, BlocksOfACooperativeLaunchMeet) {
  uint64_t memory = map(4096);
  Parameters parameters(memory, memory + 64);
  auto launched = context().launch(0, kernel("meet"), {{32}, {64}, 0, true, parameters.bytes()}, next_tag());
  ASSERT_TRUE(launched) << launched.error().text;
  finish();
  EXPECT_EQ(read<unsigned>(memory + 64, 1)[0], 32u);
}

TEST_P(LaunchTest, CooperativeLaunchBeyondTheDeviceIsRefused) {
  uint64_t memory = map(4096);
  Parameters parameters(memory, memory + 64);
  EXPECT_FALSE(context().launch(0, kernel("meet"), {{1'000'000}, {64}, 0, true, parameters.bytes()}, next_tag()));
}

TEST_P(LaunchTest, ParametersAreCopiedAtTheLaunch) {
  uint64_t memory = map(4096);
  auto parameters = std::make_unique<Parameters>(memory, 1000);
  launch(0, "step_value", {1}, {1}, *parameters);
  launch(0, "step_value", {1}, {1}, *parameters);
  parameters.reset();
  finish();
  unsigned expected = 0;
  for (int i = 0; i < 2000; ++i) expected = expected * 3 + 1;
  EXPECT_EQ(read<unsigned>(memory, 1)[0], expected);
}

TEST_P(LaunchTest, ConfigurationsBeyondTheDeviceAreRefused) {
  uint64_t memory = map(4096);
  Parameters parameters(memory);
  auto refused = [&](device::Dim3 grid, device::Dim3 block, uint32_t shared) {
    return !context().launch(0, kernel("positions"), {grid, block, shared, false, parameters.bytes()}, next_tag());
  };
  EXPECT_TRUE(refused({1}, {1025}, 0));
  EXPECT_TRUE(refused({1}, {32, 33}, 0));
  EXPECT_TRUE(refused({0}, {32}, 0));
  EXPECT_TRUE(refused({1}, {0}, 0));
  EXPECT_TRUE(refused({1, 65536}, {32}, 0));
  EXPECT_TRUE(refused({1}, {1, 1, 65}, 0));
  EXPECT_TRUE(refused({1}, {32}, 1 << 20));
  EXPECT_FALSE(refused({1}, {32}, 1024));
  finish();
}

TEST_P(LaunchTest, LaunchWithTooFewParametersIsRefused) {
  EXPECT_FALSE(context().launch(0, kernel("positions"), {{1}, {32}, 0, false, {}}, next_tag()));
}

TEST_P(LaunchTest, TwoContextsShareTheDevice) {
  constexpr int kCount = 50'000;
  auto other = target().open(nullptr);
  ASSERT_TRUE(other) << other.error().text;
  std::string fatbin = kernels_from_ptx();
  auto other_module = (*other)->load(std::as_bytes(std::span(fatbin)));
  ASSERT_TRUE(other_module);
  uint64_t memory = map(kCount * sizeof(unsigned)), other_memory = target().window_base() + target().window_bytes() / 2;
  ASSERT_TRUE((*other)->map(other_memory, Bytes{2 * kMiB}, *target().allocate(Bytes{2 * kMiB}), false));
  Parameters parameters(other_memory);
  auto positions = (*other)->kernel(**other_module, "positions");
  ASSERT_TRUE(positions);
  device::LaunchConfig config{{kCount / 250}, {250}, 0, false, parameters.bytes()};
  for (device::Tag tag = 1; tag <= 5; ++tag) {
    launch(0, "positions", config.grid, config.block, Parameters(memory));
    ASSERT_TRUE((*other)->launch(0, **positions, config, tag));
  }
  finish();
  device::Completion done[1];
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ((*other)->completions(done, std::chrono::seconds(60)), 1u);
    EXPECT_EQ(done[0].cuda_error, 0u) << done[0].text;
  }
  std::vector<unsigned> expected(kCount), theirs(kCount);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(read<unsigned>(memory, kCount), expected);
  device::CopyShape shape{{reinterpret_cast<uintptr_t>(theirs.data())}, {other_memory}, kCount * sizeof(unsigned)};
  ASSERT_TRUE((*other)->copy(0, device::CopyDirection::kToHost, shape, 6));
  ASSERT_EQ((*other)->completions(done, std::chrono::seconds(60)), 1u);
  EXPECT_EQ(theirs, expected);
}

}  // namespace
}  // namespace heddle::conformance
