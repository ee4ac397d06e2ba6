#include "conformance_test.h"
#include "library/curand.h"

namespace heddle::conformance {
namespace {

class FaultTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_TRUE(context().create_stream(1, true, 0));
  }
};
HEDDLE_CONFORMANCE_SUITE(FaultTest);

TEST_P(FaultTest, WildStoreIsAnIllegalAddress) {
  uint64_t hole = map(4096) + 2 * kMiB;
  auto done = wait_for(launch(0, "write_to", {1}, {1}, Parameters(hole)));
  EXPECT_EQ(done.cuda_error, 700u);
  EXPECT_NE(done.text.find("write_to"), std::string::npos) << done.text;
}

TEST_P(FaultTest, NullStoreIsAnIllegalAddress) {
  EXPECT_EQ(wait_for(launch(0, "write_to", {1}, {1}, Parameters(uint64_t{0}))).cuda_error, 700u);
}

TEST_P(FaultTest, StoreToMemoryOfTheHostIsAnIllegalAddress) {
  if (target().reaches_host_memory()) GTEST_SKIP() << "this device's kernels reach all memory of their process";
  int victim = 5;
  auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&victim));
  EXPECT_EQ(wait_for(launch(0, "write_to", {1}, {1}, Parameters(address))).cuda_error, 700u);
  EXPECT_EQ(victim, 5);
}

// Its numbers are written by the processor, which could write anywhere in the worker.
TEST_P(FaultTest, AGeneratorOfTheHostWritesToMemoryOfTheProgramAlone) {
  uint32_t victim = 5;
  library::curand::Draw draw;
  draw.type = library::curand::kPhilox;
  draw.output = reinterpret_cast<uintptr_t>(&victim);
  draw.count = 1;
  draw.host = true;
  const auto words = draw.pack();
  const device::Tag tag = next_tag();
  ASSERT_TRUE(context().call(0, {library::Library::kCurand, 0, words}, tag));
  EXPECT_NE(wait_for(tag).cuda_error, 0u);
  EXPECT_EQ(victim, 5u);
}

TEST_P(FaultTest, MisalignedStore) {
  EXPECT_EQ(wait_for(launch(0, "write_to", {1}, {1}, Parameters(map(4096) + 2))).cuda_error, 716u);
}

TEST_P(FaultTest, Trap) {
  EXPECT_EQ(wait_for(launch(0, "stop", {1}, {1}, Parameters())).cuda_error, 719u);
}

TEST_P(FaultTest, FailedAssertion) {
  EXPECT_EQ(wait_for(launch(0, "assert_positive", {1}, {1}, Parameters(1))).cuda_error, 0u);
  EXPECT_EQ(wait_for(launch(0, "assert_positive", {1}, {1}, Parameters(-1))).cuda_error, 710u);
}

TEST_P(FaultTest, EverythingAfterAFaultFailsWithItsCode) {
  uint64_t memory = map(4096);
  kernel("write_to");  // a device may no longer be able to look one up after a fault
  wait_for(launch(0, "stop", {1}, {1}, Parameters()));
  std::vector<int> values(1000);
  EXPECT_EQ(wait_for(launch(1, "write_to", {1}, {1}, Parameters(memory))).cuda_error, 719u);
  EXPECT_EQ(wait_for(to_device(0, memory, values.data(), 4000)).cuda_error, 719u);
  EXPECT_EQ(wait_for(fill(1, memory, 1, 4000)).cuda_error, 719u);
  EXPECT_EQ(wait_for(mark(0)).cuda_error, 719u);
}

TEST_P(FaultTest, WorkOfOtherStreamsFailsToo) {
  uint64_t memory = map(4096);
  std::vector<device::Tag> others;
  others.push_back(launch(1, "wait_for_flag", {4}, {32}, Parameters(memory)));
  for (int i = 0; i < 5; ++i) others.push_back(launch(1, "write_to", {1}, {1}, Parameters(memory)));
  others.push_back(mark(1));
  wait_for(launch(0, "stop", {1}, {1}, Parameters()));
  for (device::Tag tag : others) EXPECT_EQ(wait_for(tag).cuda_error, 719u);
}

TEST_P(FaultTest, CompletionsOfAStreamStayInOrderThroughAFault) {
  uint64_t memory = map(4096);
  std::vector<device::Tag> tags{launch(1, "wait_for_flag", {4}, {32}, Parameters(memory))};
  for (int i = 0; i < 5; ++i) tags.push_back(mark(1));
  device::Tag fault = launch(0, "stop", {1}, {1}, Parameters());
  wait_for(tags.back());
  wait_for(fault);
  std::vector<device::Tag> seen;
  for (device::Tag tag : order()) {
    if (tag != fault) seen.push_back(tag);
  }
  EXPECT_EQ(seen, tags);
}

TEST_P(FaultTest, HeldStreamsAreLetGo) {
  device::Tag held = next_tag();
  ASSERT_TRUE(context().hold(1, held));
  auto behind = mark(1);
  wait_for(held);
  wait_for(launch(0, "stop", {1}, {1}, Parameters()));
  EXPECT_EQ(wait_for(behind).cuda_error, 719u);
  EXPECT_TRUE(context().release(held));
}

TEST_P(FaultTest, OtherContextOfTheDeviceDoesNotNotice) {
  if (!target().isolates_contexts()) GTEST_SKIP() << "contexts of one process share a fault on this device";
  auto other = target().open(nullptr);
  ASSERT_TRUE(other);
  ASSERT_TRUE((*other)->mark(0, 1));
  wait_for(launch(0, "stop", {1}, {1}, Parameters()));
  ASSERT_TRUE((*other)->mark(0, 2));
  device::Completion done[2];
  EXPECT_EQ((*other)->completions(done, std::chrono::seconds(10)), 2u);
  EXPECT_EQ(done[1].cuda_error, 0u);
}

TEST_P(FaultTest, ContextWithAnEndlessKernelCanBeDestroyed) {
  if (!target().ends_kernels()) GTEST_SKIP() << "a kernel of this device ends with its process only";
  launch(1, "wait_for_flag", {1000}, {256}, Parameters(map(4096)));
  std::vector<uint8_t> bytes(8 * kMiB);
  to_device(0, map(bytes.size()), bytes.data(), bytes.size());
  reopen();
  EXPECT_EQ(wait_for(launch(0, "assert_positive", {1}, {1}, Parameters(1))).cuda_error, 0u);
}

}  // namespace
}  // namespace heddle::conformance
