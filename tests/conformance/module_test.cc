#include <algorithm>

#include "conformance_test.h"

namespace heddle::conformance {
namespace {

class ModuleTest : public ConformanceTest {};
HEDDLE_CONFORMANCE_SUITE(ModuleTest);

TEST_P(ModuleTest, VariablesHaveTheirInitialValues) {
  EXPECT_EQ(read<int>(variable("counter"), 1)[0], 41);
  EXPECT_EQ(read<int>(variable("untouched"), 4), std::vector<int>(4));
  EXPECT_EQ(read<float>(variable("factors"), 3), (std::vector<float>{0.5f, 2.0f, -1.0f}));
}

TEST_P(ModuleTest, PointersToVariablesAreInitialised) {
  EXPECT_EQ(read<uint64_t>(variable("pointer_to_counter"), 1)[0], variable("counter"));
}

TEST_P(ModuleTest, VariablesKnowTheirSize) {
  EXPECT_EQ(context().variable(module(), "untouched")->bytes, 16u);
  EXPECT_EQ(context().variable(module(), "factors")->bytes, 12u);
}

TEST_P(ModuleTest, KernelsChangeVariables) {
  launch(0, "count_up", {10}, {32}, Parameters(2));
  finish();
  EXPECT_EQ(read<int>(variable("counter"), 1)[0], 41 + 10 * 32 * 2);
}

TEST_P(ModuleTest, CopiesChangeConstants) {
  uint64_t out = map(4096);
  write(variable("factors"), std::vector<float>{1.0f, 2.0f, 3.0f});
  launch(0, "apply_factors", {1}, {32}, Parameters(out));
  finish();
  EXPECT_EQ(read<float>(out, 3), (std::vector<float>{10.0f, 20.0f, 30.0f}));
}

TEST_P(ModuleTest, ModulesHaveVariablesOfTheirOwn) {
  std::string fatbin = kernels_from_ptx();
  auto second = context().load(std::as_bytes(std::span(fatbin)));
  ASSERT_TRUE(second);
  launch(0, "count_up", {1}, {1}, Parameters(1));
  finish();
  auto counter = context().variable(**second, "counter");
  ASSERT_TRUE(counter);
  EXPECT_EQ(read<int>(counter->address, 1)[0], 41);
  EXPECT_EQ(read<int>(variable("counter"), 1)[0], 42);
}

TEST_P(ModuleTest, FatBinaryOfNvccRuns) {
  std::string fatbin = kernels_from_nvcc();
  if (fatbin.empty()) GTEST_SKIP() << "built without nvcc";
  auto module = context().load(std::as_bytes(std::span(fatbin)));
  ASSERT_TRUE(module) << module.error().text;
  auto add = context().kernel(**module, "add");
  ASSERT_TRUE(add) << add.error().text;
  uint64_t memory = map(4096);
  write(memory, std::vector<float>{1.0f, 2.0f});
  Parameters parameters(memory, memory, memory + 64, 2);
  ASSERT_TRUE(context().launch(0, **add, {{1}, {32}, 0, false, parameters.bytes()}, next_tag()));
  finish();
  EXPECT_EQ(read<float>(memory + 64, 2), (std::vector<float>{2.0f, 4.0f}));
}

TEST_P(ModuleTest, UnknownNamesAreErrors) {
  EXPECT_EQ(context().kernel(module(), "nobody").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(context().variable(module(), "nothing").error().code, ErrorCode::kNotFound);
}

TEST_P(ModuleTest, GarbageIsNotAModule) {
  std::vector<std::byte> garbage(1000, std::byte{0x5a});
  EXPECT_FALSE(context().load(garbage));
  EXPECT_FALSE(context().load({}));
}

TEST_P(ModuleTest, CodeForNewerDevicesIsRefused) {
  std::string fatbin = ptx_fatbin(".version 9.0\n.target sm_999\n.address_size 64\n", 999);
  EXPECT_FALSE(context().load(std::as_bytes(std::span(fatbin))));
}

TEST_P(ModuleTest, PrintfReachesTheSink) {
  launch(0, "print_thread", {1}, {3}, Parameters(12));
  finish();
  std::string text = printed();
  for (int thread = 0; thread < 3; ++thread) {
    std::string line = "number 12, thread " + std::to_string(thread) + "\n";
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

}  // namespace
}  // namespace heddle::conformance
