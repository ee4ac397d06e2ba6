// Runs what nvcc makes of nvcc_test.cu, for the oldest architecture that it knows and the newest ones.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

using Progress = Block::Progress;

class Nvcc : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::ifstream file(std::string(HEDDLE_NVCC_PTX_DIR "/nvcc_test.") + GetParam() + ".ptx");
    std::stringstream text;
    text << file.rdbuf();
    ASSERT_FALSE(text.str().empty());
    machine_.load(text.str());
  }
  template <class... T>
  Machine::Outcome run(const char* kernel, const Machine::Launch& launch, T... parameters) {
    auto outcome = machine_.run(kernel, launch, parameters...);
    EXPECT_EQ(outcome.progress, Progress::kFinished) << outcome.refusal << outcome.fault.text;
    return outcome;
  }
  Machine machine_;
};
INSTANTIATE_TEST_SUITE_P(EveryArchitecture, Nvcc, ::testing::Values("75", "90", "120"),
                         [](const auto& p) { return std::string("compute_") + p.param; });

struct Pair {
  int a;
  double b;
  uint64_t c;
};

TEST_P(Nvcc, ConstantsGlobalsAndPointersInGlobals) {
  std::vector<float> a(100);
  std::iota(a.begin(), a.end(), 0.0f);
  uint64_t in = machine_.put(a), out = machine_.allocate(400);
  run("scale_and_count", {.grid = {2, 1, 1}, .block = {64, 1, 1}}, in, out, 100);
  auto result = machine_.get<float>(out, 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(result[i], a[i] * static_cast<float>(i % 4 + 1) + (i & 1 ? 3.5f : 2.5f)) << i;
  EXPECT_EQ(machine_.get<int>(machine_.address_of("counter"), 1)[0], 15);
}

TEST_P(Nvcc, RecursionOfDivergedLanes) {
  uint64_t out = machine_.allocate(64 * 4);
  run("recursion", {.block = {64, 1, 1}}, out);
  auto result = machine_.get<int>(out, 64);
  const int fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  for (int i = 0; i < 64; ++i) EXPECT_EQ(result[i], fibonacci[i % 12]) << i;
}

TEST_P(Nvcc, RecursionBeyondTheStackFaults) {
  uint64_t out = machine_.allocate(64 * 4);
  auto outcome = machine_.run("recursion", {.block = {64, 1, 1}, .stack_bytes = 64}, out);
  EXPECT_EQ(outcome.fault.cuda_error, kCudaHardwareStackError);
  EXPECT_NE(outcome.fault.text.find("stack overflow"), std::string::npos) << outcome.fault.text;
}

TEST_P(Nvcc, StructsAsParametersArgumentsAndResults) {
  uint64_t out = machine_.allocate(32 * sizeof(Pair));
  run("structs", {}, Pair{10, 1.5, 4096}, out);
  auto result = machine_.get<Pair>(out, 32);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(result[i].a, 10 + i);
    EXPECT_EQ(result[i].b, 1.5 * i);
    EXPECT_EQ(result[i].c, 4096u + 4 * i);
  }
}

TEST_P(Nvcc, PrintfOfEveryKindOfArgument) {
  uint64_t text = machine_.put(std::vector<char>{'h', 'i', 0});
  auto outcome = run("print", {.block = {4, 1, 1}}, 2, text);
  EXPECT_EQ(outcome.printed, "thread 0: 3.000000 hi c 5  3.25%\nthread 1: 3.000000 hi c 5  3.25%\n");
}

TEST_P(Nvcc, AssertFaultsWithItsPlace) {
  EXPECT_EQ(run("check", {}, 32).printed, "");
  auto outcome = machine_.run("check", {}, 5);
  EXPECT_EQ(outcome.fault.cuda_error, kCudaAssert);
  EXPECT_NE(outcome.fault.text.find("nvcc_test.cu"), std::string::npos) << outcome.fault.text;
  EXPECT_NE(outcome.fault.text.find("threadIdx.x < n"), std::string::npos) << outcome.fault.text;
  EXPECT_NE(outcome.fault.text.find("thread 5,0,0"), std::string::npos) << outcome.fault.text;
}

TEST_P(Nvcc, SumOfABlockThroughSharedMemoryAndShuffles) {
  std::vector<float> in(1000);
  std::iota(in.begin(), in.end(), 1.0f);
  uint64_t from = machine_.put(in), out = machine_.allocate(4);
  run("block_sum", {.block = {256, 1, 1}, .dynamic_shared = 1024}, from, out, 1000);
  EXPECT_EQ(machine_.get<float>(out, 1)[0], 500500.0f);
}

TEST_P(Nvcc, SharedMemoryThatWasNotAskedForFaults) {
  uint64_t from = machine_.put(std::vector<float>(1000)), out = machine_.allocate(4);
  auto outcome = machine_.run("block_sum", {.block = {256, 1, 1}, .dynamic_shared = 512}, from, out, 1000);
  EXPECT_EQ(outcome.fault.cuda_error, kCudaIllegalAddress) << outcome.fault.text;
}

TEST_P(Nvcc, ArraysInLocalMemory) {
  uint64_t out = machine_.allocate(32 * 4);
  run("local_array", {}, out, 5);
  auto result = machine_.get<int>(out, 32);
  int a[16];
  for (int i = 0; i < 16; ++i) a[i * 5 & 15] = i * 5;
  for (int t = 0; t < 32; ++t) {
    int sum = 0;
    for (int i = 0; i < 16; ++i) sum += a[(i + t) & 15] * i;
    EXPECT_EQ(result[t], sum) << t;
  }
}

TEST_P(Nvcc, MathematicalFunctions) {
  std::vector<float> f(32);
  std::vector<double> d(32);
  for (int i = 0; i < 32; ++i) f[i] = 0.37f * static_cast<float>(i + 1), d[i] = 0.73 * (i + 1);
  uint64_t f_in = machine_.put(f), d_in = machine_.put(d), f_out = machine_.allocate(128),
           d_out = machine_.allocate(256);
  run("functions", {}, f_in, d_in, f_out, d_out);
  auto f_result = machine_.get<float>(f_out, 32);
  auto d_result = machine_.get<double>(d_out, 32);
  for (int i = 0; i < 32; ++i) {
    double x = f[i], y = d[i];
    double f_expected = std::sqrt(x) + std::exp(-x) + std::sin(x) + std::log(x) + std::pow(x, 1.5) + x / 7;
    double d_expected =
        std::sqrt(y) + std::exp(-y) + std::log(y) + std::pow(y, 1.7) + y / 7 + std::tan(y) + std::trunc(y);
    EXPECT_NEAR(f_result[i], f_expected, 1e-5 * std::abs(f_expected) + 1e-5) << x;
    EXPECT_NEAR(d_result[i], d_expected, 1e-12 * std::abs(d_expected) + 1e-12) << y;
  }
}

TEST_P(Nvcc, VotesAndCountingBarriers) {
  uint64_t out = machine_.allocate(64 * 4);
  run("votes", {.block = {64, 1, 1}}, out, 20);
  auto result = machine_.get<uint32_t>(out, 64);
  for (uint32_t t = 0; t < 64; ++t) {
    uint32_t base = t & 32, ballot = 0;
    for (uint32_t l = 0; l < 32; ++l) ballot |= ((base + l) & 20 ? 1u : 0u) << l;
    uint32_t expected = ballot + (t < 20 ? 20 : 0) + (base ? 0 : 1000) + (base ? 0 : 100) + 20;
    EXPECT_EQ(result[t], expected) << t;
  }
}

TEST_P(Nvcc, SwitchWithManyCases) {
  std::vector<int> in(64, 9);
  uint64_t out = machine_.put(in);
  run("cases", {.block = {64, 1, 1}}, out, 77);
  auto result = machine_.get<int>(out, 64);
  for (int t = 0; t < 64; ++t) {
    const int expected[] = {77, 231, 9 ^ 77, t ? 77 / t : 0, t ? 77 % t : 0, 9 << (77 & 7), -t, t * t, 0};
    EXPECT_EQ(result[t], expected[t % 9]) << t;
  }
}

TEST_P(Nvcc, NarrowTypesAndTheirVectors) {
  std::vector<uint8_t> c(32);
  std::vector<int16_t> s(32);
  std::vector<int8_t> q(128);
  for (int i = 0; i < 32; ++i) c[i] = static_cast<uint8_t>(7 * i), s[i] = static_cast<int16_t>(-2000 * i);
  for (int i = 0; i < 128; ++i) q[i] = static_cast<int8_t>(37 * i);
  uint64_t c_at = machine_.put(c), s_at = machine_.put(s), q_at = machine_.put(q);
  run("narrow", {}, c_at, s_at, q_at);
  auto c_result = machine_.get<uint8_t>(c_at, 32);
  auto s_result = machine_.get<int16_t>(s_at, 32);
  auto q_result = machine_.get<int8_t>(q_at, 128);
  for (int i = 0; i < 32; ++i) {
    auto expected = static_cast<uint8_t>(c[i] * 3 + 1);
    EXPECT_EQ(c_result[i], expected);
    EXPECT_EQ(s_result[i], static_cast<int16_t>(s[i] / 3 - expected));
    EXPECT_EQ(q_result[4 * i], static_cast<int8_t>(q[4 * i] + q[4 * i + 1]));
    EXPECT_EQ(q_result[4 * i + 3], static_cast<int8_t>(q[4 * i + 2] >> 1));
  }
}

TEST_P(Nvcc, ALockThatAllThreadsOfAWarpTake) {
  uint64_t lock = machine_.put(std::vector<int>{0}), value = machine_.put(std::vector<int>{0});
  run("locked", {.block = {64, 1, 1}}, lock, value);
  EXPECT_EQ(machine_.get<int>(value, 1)[0], 64);
}

TEST_P(Nvcc, GroupsOfLanesThatFormAsTheyCome) {
  std::vector<int> keys(128);
  int total = 0;
  for (int i = 0; i < 128; ++i) keys[i] = i * 7, total += keys[i] % 5;
  uint64_t count = machine_.put(std::vector<int>{0, 0}), in = machine_.put(keys);
  run("aggregated", {.block = {128, 1, 1}}, count, in);
  EXPECT_EQ(machine_.get<int>(count, 2), (std::vector<int>{total, 0}));
}

TEST_P(Nvcc, HalvesOfAWarpMeetAtSyncwarp) {
  uint64_t out = machine_.allocate(64 * 4);
  run("halves", {.block = {64, 1, 1}}, out);
  auto result = machine_.get<int>(out, 64);
  for (int t = 0; t < 64; ++t) EXPECT_EQ(result[t], t % 2 ? 100 + 2 * (t - 1) : t + 1) << t;
}

TEST_P(Nvcc, TwoDimensionalBlocksAndSharedArrays) {
  std::vector<float> in(256);
  std::iota(in.begin(), in.end(), 0.0f);
  uint64_t from = machine_.put(in), out = machine_.allocate(1024);
  run("strided_average", {.block = {16, 16, 1}}, from, out, 16);
  auto result = machine_.get<float>(out, 256);
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 16; ++x) EXPECT_EQ(result[x * 16 + y], in[y * 16 + x] * 0.5f);
}

TEST_P(Nvcc, FunctionsThroughATableOfPointers) {
  std::vector<int> which(32);
  for (int i = 0; i < 32; ++i) which[i] = i * 5 % 3;
  uint64_t in = machine_.put(which), out = machine_.allocate(32 * 4);
  run("through_pointers", {}, in, out);
  auto result = machine_.get<float>(out, 32);
  for (int i = 0; i < 32; ++i) {
    auto x = static_cast<float>(i);
    EXPECT_EQ(result[i], which[i] == 0 ? x + 3 : which[i] == 1 ? x - 3 : x * 3) << i;
  }
}

TEST_P(Nvcc, VirtualFunctionsOfObjectsOnTheDeviceHeap) {
  uint64_t out = machine_.allocate(64 * 4), pieces = machine_.put(std::vector<int>{0});
  run("shapes_on_the_heap", {.block = {64, 1, 1}}, out, pieces);
  auto result = machine_.get<int>(out, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(result[i], i % 3 ? i * i : 2 * i) << i;
  auto fit = static_cast<int>(Machine::kHeap / 1008);
  EXPECT_GE(machine_.get<int>(pieces, 1)[0], fit - 2) << "objects may lie between";
}

TEST_P(Nvcc, ArithmeticOnHalves) {
  std::vector<float> in(32);
  for (int i = 0; i < 32; ++i) in[i] = static_cast<float>(i - 16) / 4;
  uint64_t from = machine_.put(in), out = machine_.allocate(32 * 12);
  run("half_arithmetic", {}, from, out);
  auto result = machine_.get<float>(out, 96);
  for (int i = 0; i < 32; ++i) {
    float x = in[i];
    EXPECT_EQ(result[3 * i], x / 2 + x * x) << i;
    EXPECT_EQ(result[3 * i + 1], std::max(-x / 2 + x * x, 0.25f)) << i;
    EXPECT_EQ(result[3 * i + 2], x + (x < 0.5f ? 1000.0f : 0.0f)) << i;
  }
}

TEST_P(Nvcc, AsynchronousCopiesIntoSharedMemory) {
  std::vector<float> in(256);
  std::iota(in.begin(), in.end(), 0.0f);
  uint64_t from = machine_.put(in), out = machine_.allocate(64 * 4);
  run("pipelined", {.block = {64, 1, 1}}, from, out);
  auto result = machine_.get<float>(out, 64);
  for (int i = 0; i < 64; ++i) {
    const float* part = &in[(i + 1) % 64 * 4];
    EXPECT_EQ(result[i], i == 6 ? part[0] + part[1] : part[0] + part[1] + part[2] + part[3]) << i;
  }
}

TEST_P(Nvcc, ProductsOfMatricesOfHalves) {
  std::vector<_Float16> a(256), b(256);
  std::vector<float> c(256);
  for (int i = 0; i < 256; ++i) {
    a[i] = static_cast<_Float16>(i % 7 - 3);
    b[i] = static_cast<_Float16>(i % 5 * 0.5f);
    c[i] = static_cast<float>(i);
  }
  uint64_t sum = machine_.put(c);
  run("tensor_product", {}, machine_.put(a), machine_.put(b), sum);
  auto result = machine_.get<float>(sum, 256);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 16; ++column) {
      float expected = c[row * 16 + column];
      for (int k = 0; k < 16; ++k)
        expected += static_cast<float>(a[row * 16 + k]) * static_cast<float>(b[column * 16 + k]);
      EXPECT_EQ(result[column * 16 + row], 2 * expected) << row << " " << column;
    }
}

TEST_P(Nvcc, ProductsOfMatricesOfBytes) {
  std::vector<int8_t> a(8 * 16), b(16 * 32);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<int8_t>(i * 37);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<int8_t>(i * 11);
  uint64_t out = machine_.allocate(256 * 4);
  run("byte_product", {}, machine_.put(a), machine_.put(b), out);
  auto result = machine_.get<int>(out, 256);
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 32; ++column) {
      int expected = 5;
      for (int k = 0; k < 16; ++k) expected += a[row * 16 + k] * b[k * 32 + column];
      EXPECT_EQ(result[row * 32 + column], expected) << row << " " << column;
    }
}

}  // namespace
}  // namespace heddle::software
