// Whole kernels, as nvcc writes them, from launch to result.

#include <gtest/gtest.h>

#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

using Progress = Block::Progress;

constexpr const char* kVecadd = R"(
.version 9.0
.target sm_75
.address_size 64
.const .align 4 .f32 scale = 0f40000000;
.visible .entry vecadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>; .reg .f32 %f<5>; .reg .b32 %r<6>; .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.s32 %p1, %r1, %r2;
  @%p1 bra $L__BB0_2;
  cvta.to.global.u64 %rd4, %rd1;
  mul.wide.s32 %rd5, %r1, 4;
  add.s64 %rd6, %rd4, %rd5;
  ld.global.f32 %f1, [%rd6];
  cvta.to.global.u64 %rd7, %rd2;
  add.s64 %rd8, %rd7, %rd5;
  ld.global.f32 %f2, [%rd8];
  ld.const.f32 %f4, [scale];
  fma.rn.f32 %f3, %f2, %f4, %f1;
  cvta.to.global.u64 %rd9, %rd3;
  add.s64 %rd10, %rd9, %rd5;
  st.global.f32 [%rd10], %f3;
$L__BB0_2:
  ret;
}
)";

class Kernel : public ::testing::TestWithParam<const InstructionSet*> {
 protected:
  Machine machine_{*GetParam()};
};
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Kernel, ::testing::ValuesIn(runnable_instruction_sets()),
                         [](const auto& p) { return std::string(p.param->name()); });

TEST_P(Kernel, AddsVectorsWhoseLengthFillsNoWholeBlock) {
  constexpr uint32_t kCount = 1000;
  std::vector<float> a(kCount), b(kCount);
  for (uint32_t i = 0; i < kCount; ++i) a[i] = static_cast<float>(i), b[i] = 0.5f * static_cast<float>(i);
  machine_.load(kVecadd);
  uint64_t in_a = machine_.put(a), in_b = machine_.put(b), out = machine_.allocate(4 * kCount);
  auto outcome = machine_.run("vecadd", {.grid = {4, 1, 1}, .block = {256, 1, 1}}, in_a, in_b, out, kCount);
  ASSERT_EQ(outcome.progress, Progress::kFinished) << outcome.refusal << outcome.fault.text;
  auto result = machine_.get<float>(out, kCount);
  for (uint32_t i = 0; i < kCount; ++i) EXPECT_EQ(result[i], a[i] + 2 * b[i]) << i;
}

TEST_P(Kernel, CountsInstructionsAndSectorsExactly) {
  machine_.load(kVecadd);
  std::vector<float> ones(64, 1.0f);
  uint64_t in_a = machine_.put(ones), in_b = machine_.put(ones), out = machine_.allocate(256);
  auto outcome = machine_.run("vecadd", {.block = {64, 1, 1}}, in_a, in_b, out, 32u);
  ASSERT_EQ(outcome.progress, Progress::kFinished) << outcome.refusal << outcome.fault.text;
  // The first warp executes all 23 instructions; the second 10, and the return.
  EXPECT_EQ(outcome.counters.warp_instructions, 23u + 11u);
  // Two loads and a store of 128 bytes, and one sector of the constant.
  EXPECT_EQ(outcome.counters.global_bytes, 3 * 128u + 32u);
}

TEST_P(Kernel, CountsWhatLiesOnTheHostApart) {
  machine_.load(kVecadd);
  std::vector<float> ones(64, 1.0f);
  uint64_t in_a = machine_.put(ones), in_b = machine_.put(ones);
  const uint64_t granule = MemoryMap::kGranule;
  machine_.allocate(granule - machine_.allocate(0) % granule);
  const uint64_t out = machine_.allocate(granule);
  machine_.lies_on_host(out, granule);
  auto outcome = machine_.run("vecadd", {.block = {64, 1, 1}}, in_a, in_b, out, 32u);
  ASSERT_EQ(outcome.progress, Progress::kFinished) << outcome.refusal << outcome.fault.text;
  EXPECT_EQ(outcome.counters.global_bytes, 3 * 128u + 32u);
  EXPECT_EQ(outcome.counters.host_bytes, 128u);
  EXPECT_EQ(machine_.get<float>(out, 32), std::vector<float>(32, 3.0f));
}

TEST_P(Kernel, FaultsAtAnAccessOutsideOfMemory) {
  machine_.load(kVecadd);
  uint64_t out = machine_.allocate(4096);
  auto outcome = machine_.run("vecadd", {.block = {64, 1, 1}}, out, uint64_t{16}, out, 64u);
  EXPECT_EQ(outcome.progress, Progress::kFaulted);
  EXPECT_EQ(outcome.fault.cuda_error, kCudaIllegalAddress);
  EXPECT_NE(outcome.fault.text.find("illegal read of 4 bytes at 0x10"), std::string::npos) << outcome.fault.text;
  EXPECT_NE(outcome.fault.text.find("kernel vecadd, PTX line 25"), std::string::npos) << outcome.fault.text;
}

TEST_P(Kernel, FaultsAtAMisalignedAccess) {
  machine_.load(kVecadd);
  uint64_t out = machine_.allocate(4096);
  auto outcome = machine_.run("vecadd", {.block = {64, 1, 1}}, out + 2, out, out, 64u);
  EXPECT_EQ(outcome.fault.cuda_error, kCudaMisalignedAddress);
}

TEST_P(Kernel, StopsAndGoesOnAtAnyInstruction) {
  machine_.load(kVecadd);
  std::vector<float> ones(64, 1.0f);
  uint64_t in = machine_.put(ones), out = machine_.allocate(256);
  auto outcome = machine_.run("vecadd", {.block = {64, 1, 1}, .slice = 1}, in, in, out, 64u);
  ASSERT_EQ(outcome.progress, Progress::kFinished) << outcome.fault.text;
  EXPECT_EQ(machine_.get<float>(out, 64), std::vector<float>(64, 3.0f));
}

}  // namespace
}  // namespace heddle::software
