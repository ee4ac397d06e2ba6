// Divergence, rendezvous, barriers, calls: what lanes and warps do with each other.

#include <gtest/gtest.h>

#include <bit>

#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

using Progress = Block::Progress;

class WarpTest : public ::testing::TestWithParam<const InstructionSet*> {
 protected:
  // A kernel with %t the thread, %l the lane and %mine the address of the thread's word of `out`.
  void load(const std::string& body, const std::string& module_scope = "") {
    machine_.load(".version 8.0\n.target sm_80\n.address_size 64\n" + module_scope +
                  "\n.entry k(.param .u64 out) {\n"
                  ".reg .b64 %rd<10>, %out, %mine; .reg .b32 %r<10>, %t, %l; .reg .pred %p<5>;\n"
                  "ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %l, %laneid;\n"
                  "mul.wide.u32 %mine, %t, 4; add.u64 %mine, %mine, %out;\n" +
                  body + "\nret; }\n");
  }
  std::vector<uint32_t> run(uint32_t threads = 32) {
    uint64_t out = machine_.allocate(4 * threads);
    outcome_ = machine_.run("k", {.block = {threads, 1, 1}}, out);
    EXPECT_EQ(outcome_.progress, Progress::kFinished) << outcome_.refusal << outcome_.fault.text;
    return machine_.get<uint32_t>(out, threads);
  }
  Fault fault_of(uint32_t threads = 32) {
    return machine_.run("k", {.block = {threads, 1, 1}}, machine_.allocate(4 * threads)).fault;
  }
  Machine machine_{*GetParam()};
  Machine::Outcome outcome_;
};
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, WarpTest, ::testing::ValuesIn(runnable_instruction_sets()),
                         [](const auto& p) { return std::string(p.param->name()); });

TEST_P(WarpTest, LanesThatLoopForDifferentlyLongMeetBehindTheLoop) {
  load(
      "mov.u32 %r1, 0;\nLOOP: setp.ge.u32 %p1, %r1, %l; @%p1 bra DONE; add.u32 %r1, %r1, 1; bra LOOP;\n"
      "DONE: activemask.b32 %r2; popc.b32 %r2, %r2; mad.lo.u32 %r1, %r2, 100, %r1; st.global.u32 [%mine], %r1;");
  auto result = run();
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(result[t], 3200 + t);
}

TEST_P(WarpTest, WarpsThatSumUpInTheSamePlaceAdvanceTogether) {
  load(
      "and.b32 %l, %t, 31; mul.wide.u32 %mine, %l, 4; add.u64 %mine, %mine, %out; mov.u32 %r1, 0;\n"
      "LOOP: ld.global.u32 %r2, [%mine]; add.u32 %r2, %r2, 1; st.global.u32 [%mine], %r2;\n"
      "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 1000; @%p1 bra LOOP;");
  const auto sums = run(256);
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(sums[t], 1000u);
}

TEST_P(WarpTest, ExitedLanesAreNotWaitedFor) {
  load(
      "setp.lt.u32 %p1, %l, 10; @%p1 ret;\nshfl.sync.idx.b32 %r1, %t, 31, 31, -1; bar.warp.sync -1; bar.sync 0;\n"
      "st.global.u32 [%mine], %r1;");
  EXPECT_EQ(run(64)[63], 63u);
}

TEST_P(WarpTest, ShufflesOfEveryMode) {
  load(
      "shfl.sync.up.b32 %r1|%p1, %t, 3, 0, -1; selp.u32 %r2, 100, 0, %p1; add.u32 %r1, %r1, %r2;\n"
      "shfl.sync.down.b32 %r3|%p1, %t, 3, 31, -1; selp.u32 %r2, 100, 0, %p1; add.u32 %r3, %r3, %r2;\n"
      "shfl.sync.bfly.b32 %r4, %t, 5, 31, -1; shfl.sync.idx.b32 %r5, %t, %r4, 0x1807, -1;\n"
      "mad.lo.u32 %r1, %r3, 1000, %r1; mad.lo.u32 %r4, %r4, 1000000, %r1; mad.lo.u32 %r4, %r5, 100000000, %r4;\n"
      "st.global.u32 [%mine], %r4;");
  auto result = run();
  for (uint32_t l = 0; l < 32; ++l) {
    uint32_t up = l >= 3 ? l - 3 + 100 : l, down = l + 3 <= 31 ? l + 3 + 100 : l, butterfly = l ^ 5;
    uint32_t in_eights = (l & 24) | (butterfly & 7);
    EXPECT_EQ(result[l], in_eights * 100000000 + butterfly * 1000000 + down * 1000 + up) << l;
  }
}

TEST_P(WarpTest, LanesThatDoNotShuffleGiveZero) {
  // The last step of a reduction, by eight lanes: the first two strides lead beyond them. As seen on an H200.
  load(
      "setp.ge.u32 %p1, %l, 8; add.u32 %r1, %t, 100; @%p1 bra DONE;\n"
      "shfl.sync.down.b32 %r2, %r1, 5, 31, 0xff; st.global.u32 [%mine], %r2;\n"
      "shfl.sync.bfly.b32 %r2|%p2, %r1, 16, 31, 0xff; selp.u32 %r3, 7, 0, %p2; add.u32 %r2, %r2, %r3;\n"
      "st.global.u32 [%mine+32], %r2; shfl.sync.down.b32 %r2, %r1, 16, 31, 0xff; add.u32 %r1, %r1, %r2;\n"
      "shfl.sync.down.b32 %r2, %r1, 8, 31, 0xff; add.u32 %r1, %r1, %r2; st.global.u32 [%mine+64], %r1;\nDONE:");
  const auto result = run();
  for (uint32_t l = 0; l < 8; ++l) {
    EXPECT_EQ(result[l], l < 3 ? 105 + l : 0) << l;
    EXPECT_EQ(result[8 + l], 7u) << l;
    EXPECT_EQ(result[16 + l], 100 + l) << l;
  }
}

TEST_P(WarpTest, SyncInstructionsWaitForLanesThatComeLater) {
  // Odd lanes arrive first; even ones after a detour. All must see each other's values.
  load(
      "mov.u32 %r1, %t; and.b32 %r2, %l, 1; setp.eq.u32 %p1, %r2, 1; @%p1 bra MEET;\n"
      "mov.u32 %r3, 0;\nDELAY: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 300; @%p2 bra DELAY; add.u32 %r1, %r1, "
      "1000;\n"
      "bra MEET;\nMEET: shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1; st.global.u32 [%mine], %r4;");
  auto result = run();
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(result[l], l % 2 ? l - 1 + 1000 : l + 1);
}

TEST_P(WarpTest, GroupsOfOneWarpUseTheirOwnMasks) {
  load(
      "setp.lt.u32 %p1, %l, 16; selp.b32 %r1, 0xFFFF, 0xFFFF0000, %p1; and.b32 %r2, %l, 3; setp.eq.u32 %p2, %r2, 0;\n"
      "vote.sync.ballot.b32 %r3, %p2, %r1; vote.sync.all.pred %p3, %p1, %r1; redux.sync.add.u32 %r4, %t, %r1;\n"
      "selp.u32 %r5, 1, 0, %p3; add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; st.global.u32 [%mine], %r3;");
  auto result = run();
  EXPECT_EQ(result[0], 0x1111u + 120 + 1);
  EXPECT_EQ(result[16], 0x11110000u + 376);
}

TEST_P(WarpTest, VotesMayNameTheirModeBeforeSync) {
  load(
      "griddepcontrol.wait; setp.lt.u32 %p1, %l, 5; vote.ballot.sync.b32 %r1, %p1, -1;\n"
      "vote.any.sync.pred %p2, %p1, -1; selp.u32 %r2, 100, 0, %p2; add.u32 %r1, %r1, %r2;\n"
      "griddepcontrol.launch_dependents; st.global.u32 [%mine], %r1;");
  EXPECT_EQ(run()[9], 0x1fu + 100);
}

TEST_P(WarpTest, DivergedGroupsSynchroniseApart) {
  load(
      "setp.lt.u32 %p1, %l, 8; @%p1 bra FEW;\nvote.sync.any.pred %p2, %p1, 0xFFFFFF00; selp.u32 %r1, 1, 2, %p2; bra "
      "OUT;\n"
      "FEW: vote.sync.any.pred %p2, %p1, 0xFF; selp.u32 %r1, 3, 4, %p2;\nOUT: st.global.u32 [%mine], %r1;");
  auto result = run();
  EXPECT_EQ(result[0], 3u);
  EXPECT_EQ(result[8], 2u);
}

TEST_P(WarpTest, MatchFindsEqualValues) {
  load(
      "shr.u32 %r1, %l, 2; match.any.sync.b32 %r2, %r1, -1; match.all.sync.b32 %r3|%p1, %r1, -1; setp.lt.u32 %p2, %l, "
      "4;\n"
      "@%p2 match.all.sync.b32 %r3|%p1, %r1, 0xF; selp.u32 %r4, 1, 0, %p1; add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, "
      "%r3;\n"
      "st.global.u32 [%mine], %r2;");
  auto result = run();
  EXPECT_EQ(result[1], 0xFu + 1 + 0xF);
  EXPECT_EQ(result[31], 0xF0000000u);
}

TEST_P(WarpTest, ReductionsOfEveryOperation) {
  load(
      "sub.s32 %r1, %t, 16; redux.sync.min.s32 %r2, %r1, -1; redux.sync.max.u32 %r3, %r1, -1; redux.sync.xor.b32 %r4, "
      "%t, -1;\n"
      "redux.sync.or.b32 %r5, %t, -1; redux.sync.and.b32 %r6, %r1, -1; sub.s32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4;\n"
      "add.u32 %r2, %r2, %r5; add.u32 %r2, %r2, %r6; st.global.u32 [%mine], %r2;");
  EXPECT_EQ(run()[9], static_cast<uint32_t>(-16 + 1) + 0 + 31 + 0);
}

TEST_P(WarpTest, BarriersOrderWarpsAndReduce) {
  load(
      ".shared .align 4 .b8 box[512]; .reg .b32 %box; mov.u32 %box, box; mad.lo.u32 %r1, %t, 4, %box; st.shared.u32 "
      "[%r1], %t;\n"
      "bar.sync 0; xor.b32 %r2, %t, 96; mad.lo.u32 %r2, %r2, 4, %box; ld.shared.u32 %r3, [%r2];\n"
      "setp.lt.u32 %p1, %t, 40; bar.red.popc.u32 %r4, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, "
      "!%p1;\n"
      "selp.u32 %r5, 1000, 0, %p2; selp.u32 %r6, 2000, 0, %p3; mad.lo.u32 %r3, %r4, 10000, %r3; add.u32 %r3, %r3, "
      "%r5;\n"
      "add.u32 %r3, %r3, %r6; st.global.u32 [%mine], %r3;");
  auto result = run(128);
  for (uint32_t t = 0; t < 128; ++t) EXPECT_EQ(result[t], 400000 + 2000 + (t ^ 96)) << t;
}

TEST_P(WarpTest, ProducersArriveAndConsumersWaitAtANamedBarrier) {
  load(
      ".shared .align 4 .u32 box; setp.lt.u32 %p1, %t, 32; @%p1 bra CONSUME;\n"
      "mov.u32 %r1, 0;\nDELAY: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 500; @%p2 bra DELAY;\n"
      "st.shared.u32 [box], 77; bar.arrive 3, 64; bra OUT;\n"
      "CONSUME: bar.sync 3, 64; ld.shared.u32 %r1, [box];\nOUT: st.global.u32 [%mine], %r1;");
  EXPECT_EQ(run(64)[0], 77u);
}

TEST_P(WarpTest, ABarrierOpensWhenTheWarpsThatItWaitedForExit) {
  load(
      "setp.lt.u32 %p1, %t, 64; @%p1 bra WAIT; mov.u32 %r1, 0;\n"
      "DELAY: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 500; @%p2 bra DELAY; exit;\n"
      "WAIT: mov.u32 %r2, 3; bar.sync %r2; bar.sync 3; st.global.u32 [%mine], 5;");
  EXPECT_EQ(run(128)[63], 5u);
}

// A block that is given up while some of it waits at a barrier, and the next one in its place.
TEST_P(WarpTest, ABlockFindsNoBarrierOfTheOneBefore) {
  load(
      "setp.eq.u32 %p1, %t, 0; @%p1 bra LATE; bra MEET;\nLATE: mov.u32 %r1, 0;\n"
      "DELAY: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 500; @%p2 bra DELAY; st.global.u32 [%out], 1;\n"
      "MEET: bar.sync 0; ld.global.u32 %r2, [%out]; add.u32 %r2, %r2, 1; bar.sync 0; st.global.u32 [%mine], %r2;");
  auto kernel = machine_.compile("k");
  ASSERT_TRUE(kernel.has_value()) << kernel.error().text;
  uint64_t out = machine_.put(std::vector<uint32_t>(64));
  LaunchShape shape;
  shape.block = {64, 1, 1};
  shape.parameters = std::as_bytes(std::span(&out, 1));
  auto block = Block::create(**kernel, shape, machine_.memory(), nullptr);
  ASSERT_TRUE(block.has_value());
  (*block)->start({}, 0);
  ASSERT_EQ((*block)->run(500), Progress::kRunning);
  (*block)->start({}, 0);
  ASSERT_EQ((*block)->run(1'000'000), Progress::kFinished);
  EXPECT_EQ(machine_.get<uint32_t>(out, 64), std::vector<uint32_t>(64, 2));
}

TEST_P(WarpTest, ABarrierThatOthersNeverReachIsReported) {
  load(
      "setp.lt.u32 %p1, %t, 32; @%p1 bra OTHER; bar.sync 1; bra OUT;\nOTHER: bar.sync 2;\nOUT: st.global.u32 [%mine], "
      "%t;");
  Fault fault = fault_of(64);
  EXPECT_EQ(fault.cuda_error, kCudaLaunchFailure);
  EXPECT_NE(fault.text.find("deadlock"), std::string::npos) << fault.text;
  EXPECT_NE(fault.text.find("PTX line"), std::string::npos);
}

// Of a count of 64 threads, the first warp comes as a whole, half of the second one by one way, half by another.
TEST_P(WarpTest, WholeWarpsAndPartsOfThemMeetAtABarrier) {
  load(
      ".shared .align 4 .u32 s[64];\nmov.u32 %r1, s; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2;\n"
      "st.shared.u32 [%r1], %t; setp.lt.u32 %p1, %t, 48; @%p1 bra A; bar.sync 0; bra B;\nA: bar.sync 0;\n"
      "B: mov.u32 %r3, s; sub.u32 %r4, 63, %t; shl.b32 %r4, %r4, 2; add.u32 %r3, %r3, %r4;\n"
      "ld.shared.u32 %r5, [%r3]; st.global.u32 [%mine], %r5;");
  auto result = run(64);
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(result[t], 63 - t);
}

// Three warps wait at the barrier by turns with a fourth that exits late.
TEST_P(WarpTest, ABarrierOfWholeWarpsOpensManyTimes) {
  load(
      ".shared .align 4 .u32 s[4];\nshr.u32 %r6, %t, 5; mov.u32 %r1, 0; mov.u32 %r2, s; st.shared.u32 [%r2], 0;\n"
      "L: bar.sync 0; and.b32 %r3, %r1, 3; setp.ne.u32 %p1, %r3, %r6; @%p1 bra M; ld.shared.u32 %r4, [%r2];\n"
      "add.u32 %r4, %r4, 1; st.shared.u32 [%r2], %r4;\nM: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 40;\n"
      "@%p2 bra L; bar.sync 1; ld.shared.u32 %r5, [%r2]; st.global.u32 [%mine], %r5;");
  auto result = run(128);
  for (uint32_t t = 0; t < 128; ++t) EXPECT_EQ(result[t], 40u);
}

TEST_P(WarpTest, WarpsThatSpinForAnotherWarpMakeProgress) {
  load(
      ".shared .align 4 .u32 flag; setp.lt.u32 %p1, %t, 32; @!%p1 bra SET;\n"
      "SPIN: ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p2, %r1, 0; @%p2 bra SPIN; bra OUT;\n"
      "SET: st.volatile.shared.u32 [flag], 5; mov.u32 %r1, 1;\nOUT: st.global.u32 [%mine], %r1;");
  EXPECT_EQ(run(64)[0], 5u);
}

TEST_P(WarpTest, LanesThatSpinForALaneOfTheirWarpMakeProgress) {
  // The lane that sets the flag stands at a later pc than those which poll for it.
  load(
      ".shared .align 4 .u32 flag; setp.eq.u32 %p1, %l, 7; @%p1 bra SET;\n"
      "SPIN: ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p2, %r1, 0; @%p2 bra SPIN; bra OUT;\n"
      "SET: st.volatile.shared.u32 [flag], 5; mov.u32 %r1, 1;\nOUT: st.global.u32 [%mine], %r1;");
  auto result = run();
  EXPECT_EQ(result[0], 5u);
  EXPECT_EQ(result[7], 1u);
}

TEST_P(WarpTest, BranchTablesSendEachLaneItsWay) {
  load(
      "TABLE: .branchtargets A, B, C;\nand.b32 %r1, %l, 3; min.u32 %r1, %r1, 2; brx.idx %r1, TABLE;\n"
      "A: mov.u32 %r2, 10; bra OUT;\nB: mov.u32 %r2, 20; bra OUT;\nC: mov.u32 %r2, 30;\n"
      "OUT: activemask.b32 %r3; popc.b32 %r3, %r3; add.u32 %r2, %r2, %r3; st.global.u32 [%mine], %r2;");
  auto result = run();
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(result[l], 32 + 10 * (std::min(l & 3, 2u) + 1));
}

TEST_P(WarpTest, CallsOfSomeLanesReturnToTheRest) {
  load(
      "setp.lt.u32 %p1, %l, 5; mov.u32 %r2, 7;\n@!%p1 bra AFTER;\n{ .param .b32 a; .param .b32 r; st.param.b32 [a], "
      "%t;\n"
      "call.uni (r), twice, (a); ld.param.b32 %r2, [r]; }\nAFTER: activemask.b32 %r3; popc.b32 %r3, %r3;\n"
      "mad.lo.u32 %r2, %r3, 100, %r2; st.global.u32 [%mine], %r2;",
      ".func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %x; ld.param.u32 %x, [a]; add.u32 %x, %x, %x;\n"
      "st.param.b32 [r], %x; ret; }\n");
  auto result = run();
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(result[l], 3200 + (l < 5 ? 2 * l : 7)) << l;
}

TEST_P(WarpTest, LanesMayExitInsideACall) {
  load("{ call.uni leave_if_odd, (); }\nactivemask.b32 %r1; st.global.u32 [%mine], %r1;",
       ".func leave_if_odd() { .reg .pred %p; .reg .b32 %x; mov.u32 %x, %laneid; and.b32 %x, %x, 1; setp.eq.u32 %p, "
       "%x, 1;\n"
       "@%p exit; ret; }\n");
  EXPECT_EQ(run()[2], 0x55555555u);
}

TEST_P(WarpTest, TrapFaults) {
  load("setp.eq.u32 %p1, %t, 40; @%p1 trap;");
  EXPECT_EQ(run().size(), 32u);
  Fault fault = fault_of(64);
  EXPECT_EQ(fault.cuda_error, kCudaLaunchFailure);
  EXPECT_NE(fault.text.find("thread 40,0,0"), std::string::npos) << fault.text;
}

TEST_P(WarpTest, SpecialRegistersDescribeTheThread) {
  load(
      "mov.u32 %r1, %lanemask_lt; popc.b32 %r1, %r1; mov.u32 %r2, %warpid; mov.u32 %r3, %ntid.x; mov.u32 %r4, "
      "%nctaid.y;\n"
      "mov.u32 %r5, %lanemask_ge; popc.b32 %r5, %r5; mov.u64 %rd1, %clock64; mov.u64 %rd2, %clock64; setp.ge.u64 %p1, "
      "%rd2, %rd1;\n"
      "mad.lo.u32 %r1, %r2, 100, %r1; mad.lo.u32 %r1, %r3, 1000, %r1; mad.lo.u32 %r1, %r4, 1000000, %r1;\n"
      "mad.lo.u32 %r1, %r5, 10000000, %r1; @%p1 st.global.u32 [%mine], %r1;");
  EXPECT_EQ(run(64)[33], 310000000u + 1000000 + 64000 + 100 + 1);
}

}  // namespace
}  // namespace heddle::software
