// cp.async and mbarrier.

#include <gtest/gtest.h>

#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

using Progress = Block::Progress;

class Async : public ::testing::TestWithParam<const InstructionSet*> {
 protected:
  // A kernel with 1 KiB of shared memory `tile`, a barrier `done`, %t the thread, %mine its word of `out`.
  void load(const std::string& body) {
    machine_.load(
        ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 16 .b8 tile[1024];\n.shared .align 8 .b64 "
        "done;\n"
        ".entry k(.param .u64 out, .param .u64 in) {\n"
        ".reg .b64 %rd<10>, %out, %in, %mine; .reg .b32 %r<10>, %t; .reg .pred %p<5>;\n"
        "ld.param.u64 %out, [out]; ld.param.u64 %in, [in]; mov.u32 %t, %tid.x;\n"
        "mul.wide.u32 %mine, %t, 4; add.u64 %mine, %mine, %out;\n" +
        body + "\nret; }\n");
  }
  Machine::Outcome outcome(uint64_t out, uint64_t in = 0, uint32_t threads = 32) {
    return machine_.run("k", {.block = {threads, 1, 1}}, out, in);
  }
  std::vector<uint32_t> run(uint64_t in = 0, uint32_t threads = 32) {
    uint64_t out = machine_.allocate(4 * threads);
    auto ended = outcome(out, in, threads);
    EXPECT_EQ(ended.progress, Progress::kFinished) << ended.refusal << ended.fault.text;
    return machine_.get<uint32_t>(out, threads);
  }
  Machine machine_{*GetParam()};
};
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Async, ::testing::ValuesIn(runnable_instruction_sets()),
                         [](const auto& p) { return std::string(p.param->name()); });

const char* const kCopyOne =
    "mov.u32 %r1, tile; shl.b32 %r2, %t, 4; add.u32 %r1, %r1, %r2; cvt.u64.u32 %rd1, %r2; add.u64 %rd1, %rd1, %in;\n"
    "st.shared.v4.u32 [%r1], {9, 9, 9, 9};\n";
const char* const kSumUp =
    "cp.async.commit_group; cp.async.wait_group 0;\n"
    "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r1]; add.u32 %r3, %r3, %r4; mad.lo.u32 %r3, %r5, 100, %r3;\n"
    "mad.lo.u32 %r3, %r6, 10000, %r3; st.global.u32 [%mine], %r3;";

std::vector<uint32_t> ones() {
  return std::vector<uint32_t>(128, 1);
}

TEST_P(Async, AWholeCopyAndOneThatFillsUpWithZeros) {
  uint64_t in = machine_.put(ones());
  load(std::string(kCopyOne) + "cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;\n" + kSumUp);
  EXPECT_EQ(run(in)[31], 10102u);
  load(std::string(kCopyOne) + "cp.async.ca.shared.global [%r1], [%rd1], 16, 8;\n" + kSumUp);
  EXPECT_EQ(run(in)[31], 2u);
  load(std::string(kCopyOne) + "and.b32 %r7, %t, 4; cp.async.ca.shared.global [%r1+8], [%rd1], 8, %r7;\n" + kSumUp);
  auto sums = run(in);
  EXPECT_EQ(sums[3], 18u);
  EXPECT_EQ(sums[4], 118u);
  load(std::string(kCopyOne) +
       "setp.lt.u32 %p1, %t, 4; cp.async.ca.shared.global [%r1], [%rd1], 4, %p1; cp.async.wait_all;\n" + kSumUp);
  sums = run(in);
  EXPECT_EQ(sums[3], 90909u);
  EXPECT_EQ(sums[4], 90910u);
}

TEST_P(Async, ACopyMayNotReadWhereNothingIsNorOffItsAlignment) {
  load(std::string(kCopyOne) + "cp.async.cg.shared.global [%r1], [%rd1], 16;\n" + kSumUp);
  uint64_t out = machine_.allocate(128);
  EXPECT_EQ(outcome(out, 0x1000).fault.cuda_error, kCudaIllegalAddress);
  EXPECT_EQ(outcome(out, machine_.put(ones()) + 4).fault.cuda_error, kCudaMisalignedAddress);
}

TEST_P(Async, WarpsMeetAtABarrierInMemoryPhaseByPhase) {
  // Each warp adds to a counter, arrives and waits for all four; the second phase sees the counter of the first.
  load(
      "setp.ne.u32 %p1, %t, 0; @!%p1 mbarrier.init.shared.b64 [done], 128; @!%p1 st.shared.u32 [tile], 0; bar.sync 0;\n"
      "atom.shared.add.u32 %r1, [tile], 1; mbarrier.arrive.shared.b64 %rd1, [done];\n"
      "FIRST: mbarrier.test_wait.shared.b64 %p2, [done], %rd1; @!%p2 bra FIRST;\n"
      "ld.shared.u32 %r2, [tile]; mbarrier.arrive.release.cta.shared::cta.b64 _, [done];\n"
      "SECOND: mbarrier.try_wait.parity.shared::cta.b64 %p2, [done], 1, 1000; @!%p2 bra SECOND;\n"
      "atom.shared.add.u32 %r1, [tile], 1; bar.sync 0; ld.shared.u32 %r3, [tile]; mad.lo.u32 %r2, %r3, 1000, %r2;\n"
      "st.global.u32 [%mine], %r2;");
  auto result = run(0, 128);
  for (uint32_t t = 0; t < 128; ++t) EXPECT_EQ(result[t], 256128u) << t;
}

TEST_P(Async, WhoDropsOutIsNotExpectedAgain) {
  load(
      "setp.ne.u32 %p1, %t, 0; @!%p1 mbarrier.init.shared.b64 [done], 32; bar.warp.sync -1;\n"
      "setp.lt.u32 %p1, %t, 8; @%p1 mbarrier.arrive_drop.shared.b64 %rd1, [done]; @!%p1 mbarrier.arrive.shared.b64 "
      "%rd1, "
      "[done];\n"
      "bar.warp.sync -1; mbarrier.arrive.noComplete.shared.b64 %rd2, [done], 0x1; "
      "@%p1 ret; mbarrier.pending_count.b64 %r1, %rd2; st.global.u32 [%mine], %r1;");
  uint64_t out = machine_.allocate(128);
  auto ended = outcome(out);
  EXPECT_EQ(ended.fault.cuda_error, 0u) << ended.refusal << ended.fault.text;
  // 24 are expected in the second phase; lane 0 to 31 arrive one after the other, the 24th completes it.
  EXPECT_EQ(machine_.get<uint32_t>(out, 32)[23], 1u);
  EXPECT_EQ(machine_.get<uint32_t>(out, 32)[24], 24u);
}

TEST_P(Async, ACountOutsideOfItsRangeIsAFault) {
  load("mbarrier.init.shared.b64 [done], 0;");
  EXPECT_EQ(outcome(machine_.allocate(128)).fault.cuda_error, kCudaLaunchFailure);
}

}  // namespace
}  // namespace heddle::software
