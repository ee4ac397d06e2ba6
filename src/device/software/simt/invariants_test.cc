// What is the same in all blocks of a launch is computed once: which instructions that concerns, that results and
// instruction counts are as if each block had run them, and that an access located before is located anew where other
// lanes do it.

#include "device/software/simt/decode/invariants.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/software/ptx/parser.h"
#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

using Progress = Block::Progress;

std::string kernel_of(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 out) {\n"
         ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<4>; .shared .align 4 .b8 part[128];\n" +
         body + "\nret; }\n";
}

// How many instructions of a kernel are.
int64_t invariants_of(const std::string& body) {
  auto module = ptx::parse(kernel_of(body));
  EXPECT_TRUE(module.has_value());
  EXPECT_EQ(module->functions[0].error, "");
  const auto found = find_invariants(module->functions[0]).instructions;
  return std::count(found.begin(), found.end(), true);
}

TEST(Invariants, ParametersThreadIndicesAndWhatIsComputedFromThem) {
  EXPECT_EQ(invariants_of("ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, part; shl.b32 %r2, %r0, 2;\n"
                          "add.u32 %r3, %r1, %r2; setp.gt.u32 %p0, %r0, 7; cvta.to.global.u64 %d1, %d0;"),
            7);
}

TEST(Invariants, NothingOfTheBlockItsPlaceOrTheClock) {
  EXPECT_EQ(invariants_of("mov.u32 %r0, %ctaid.x; mov.u32 %r1, %smid; mov.u32 %r2, %clock; add.u32 %r3, %r0, 1;"), 0);
}

TEST(Invariants, NothingThatIsWrittenTwiceOrUnderAGuard) {
  EXPECT_EQ(invariants_of("mov.u32 %r0, 1; mov.u32 %r0, 2; setp.eq.u32 %p0, %r0, 1; @%p0 mov.u32 %r1, 3;"), 0);
}

TEST(Invariants, NothingThatStandsAheadOfWhatItReads) {
  EXPECT_EQ(invariants_of("bra B;\nA: add.u32 %r1, %r0, 1; ret;\nB: mov.u32 %r0, %tid.x; bra A;"), 1);
}

TEST(Invariants, NothingThatComesFromMemory) {
  EXPECT_EQ(invariants_of("ld.shared.u32 %r0, [part]; add.u32 %r1, %r0, 1;"), 0);
}

class InvariantsRun : public ::testing::TestWithParam<const InstructionSet*> {
 protected:
  Machine::Outcome run(const std::string& body, uint32_t blocks, uint64_t out) {
    machine_.load(kernel_of(body));
    return machine_.run("k", {.grid = {blocks, 1, 1}, .block = {32, 1, 1}}, out);
  }
  Machine machine_{*GetParam()};
};
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, InvariantsRun, ::testing::ValuesIn(runnable_instruction_sets()),
                         [](const auto& p) { return std::string(p.param->name()); });

// out[32 * block + thread] = 32 * block + thread + 5, in a register that other values took between.
constexpr const char* kIndices =
    "ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; add.u32 %r1, %r0, 5; mov.u32 %r2, %ctaid.x;\n"
    "mad.lo.u32 %r3, %r2, 32, %r0; mul.wide.u32 %d1, %r3, 4; add.u64 %d2, %d0, %d1;\n"
    "mad.lo.u32 %r4, %r2, 32, %r1; st.global.u32 [%d2], %r4;";

TEST_P(InvariantsRun, EveryBlockHasItsOwnResults) {
  uint64_t out = machine_.allocate(4 * 96);
  ASSERT_EQ(run(kIndices, 3, out).progress, Progress::kFinished);
  auto result = machine_.get<uint32_t>(out, 96);
  for (uint32_t i = 0; i < 96; ++i) EXPECT_EQ(result[i], i + 5);
}

TEST_P(InvariantsRun, TheyCountInEveryBlock) {
  EXPECT_EQ(run(kIndices, 3, machine_.allocate(4 * 96)).counters.warp_instructions, 3u * 10);
}

// Ten times around: one instruction of the loop is invariant, and one stands between two labels.
TEST_P(InvariantsRun, TheyCountInEveryTurnOfALoop) {
  auto outcome =
      run("mov.u32 %r0, 0;\nL: mov.u32 %r1, %tid.x;\nM: add.u32 %r0, %r0, 1;\n"
          "setp.lt.u32 %p0, %r0, 10; mov.u32 %r2, %ntid.x; @%p0 bra L;",
          1, machine_.allocate(4));
  EXPECT_EQ(outcome.counters.warp_instructions, 1u + 10 * 5 + 1);
}

TEST_P(InvariantsRun, TheyCountOnceAheadOfWhatWaitsForOtherLanes) {
  auto outcome =
      run("mov.u32 %r5, %laneid; mov.u32 %r0, %ctaid.x; add.u32 %r0, %r0, %r5; setp.lt.u32 %p0, %r0, 16;\n"
          "@%p0 bra L; mov.u32 %r3, %ctaid.x;\nL: mov.u32 %r2, 7; shfl.sync.idx.b32 %r4, %r0, 0, 31, -1;",
          1, machine_.allocate(4));
  EXPECT_EQ(outcome.counters.warp_instructions, 5u + 1 + 3);
}

// The first time around only the first lanes store, the second time all do, of which the last ones go too far.
TEST_P(InvariantsRun, AnAccessIsLocatedAnewForOtherLanes) {
  const std::string body =
      "mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 3; mov.u32 %r2, part; add.u32 %r3, %r1, %r2; mov.u32 %r4, 16;\n"
      "L: setp.ge.u32 %p0, %r0, %r4; @%p0 bra M; st.shared.u32 [%r3], %r0;\nM: add.u32 %r4, %r4, 16;\n"
      "setp.le.u32 %p1, %r4, 32; @%p1 bra L;";
  EXPECT_EQ(run(body, 1, machine_.allocate(4)).fault.cuda_error, kCudaIllegalAddress);
}

// A loop in which ever fewer lanes add up what lies beside them: what the tree of a reduction does.
TEST_P(InvariantsRun, LanesThatGetFewerAddUpWhatIsBesideThem) {
  const std::string body =
      "ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, part; add.u32 %r3, %r1, %r2;\n"
      "mov.u32 %r8, %ctaid.x; add.u32 %r7, %r0, %r8; st.shared.u32 [%r3], %r7; bar.sync 0; mov.u32 %r4, 16;\n"
      "L: setp.ge.u32 %p0, %r0, %r4; @%p0 bra M; shl.b32 %r5, %r4, 2; add.u32 %r5, %r5, %r3;\n"
      "ld.shared.u32 %r6, [%r5]; ld.shared.u32 %r7, [%r3]; add.u32 %r6, %r6, %r7; st.shared.u32 [%r3], %r6;\n"
      "M: bar.sync 0; shr.u32 %r4, %r4, 1; setp.gt.u32 %p1, %r4, 0; @%p1 bra L;\n"
      "setp.ne.u32 %p2, %r0, 0; @%p2 ret; ld.shared.u32 %r6, [part]; mul.wide.u32 %d1, %r8, 4;\n"
      "add.u64 %d2, %d0, %d1; st.global.u32 [%d2], %r6;";
  uint64_t out = machine_.allocate(4 * 3);
  ASSERT_EQ(run(body, 3, out).progress, Progress::kFinished);
  EXPECT_EQ(machine_.get<uint32_t>(out, 3), (std::vector<uint32_t>{496, 496 + 32, 496 + 64}));
}

}  // namespace
}  // namespace heddle::software
