// Which registers may share a place, and that sharing never loses a value.

#include "device/software/simt/decode/register_layout.h"

#include <gtest/gtest.h>

#include "device/software/ptx/parser.h"
#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

const std::string kHeader = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 out) {\n";

RegisterLayout layout_of(const std::string& body) {
  auto module = ptx::parse(kHeader + body + "\nret; }\n");
  EXPECT_TRUE(module.has_value());
  EXPECT_EQ(module->functions[0].error, "");
  return lay_out_registers(module->functions[0]);
}

TEST(RegisterLayout, ValuesThatFollowEachOtherShareAPlace) {
  auto layout = layout_of(".reg .b32 %r<4>;\nmov.u32 %r0, 1; mov.u32 %r1, %r0; mov.u32 %r2, %r1; mov.u32 %r3, %r2;");
  EXPECT_EQ(layout.offsets[0], layout.offsets[2]);
  EXPECT_NE(layout.offsets[0], layout.offsets[1]);
  EXPECT_EQ(layout.words_per_thread, 2u);
}

TEST(RegisterLayout, AResultNeverTakesThePlaceOfASourceOfItsInstruction) {
  auto layout = layout_of(
      ".reg .b32 %r<4>; .reg .b64 %d<2>;\nmov.u64 %d0, 1; mov.b64 {%r0, %r1}, %d0; mad.lo.u32 %r3, %r0, %r1, %r0;");
  EXPECT_NE(layout.offsets[3], layout.offsets[0]);
  EXPECT_NE(layout.offsets[3], layout.offsets[1]);
}

TEST(RegisterLayout, AValueIsKeptAroundALoop) {
  auto layout = layout_of(
      ".reg .b32 %r<5>; .reg .pred %p;\nmov.u32 %r0, 9; mov.u32 %r1, 0;\nLOOP: add.u32 %r2, %r1, %r0; mov.u32 %r3, "
      "%r2;\n"
      "mov.u32 %r1, %r3; setp.lt.u32 %p, %r1, 100; @%p bra LOOP;");
  for (uint32_t r : {1u, 2u, 3u}) EXPECT_NE(layout.offsets[0], layout.offsets[r]);
}

TEST(RegisterLayout, AGuardedWriteKeepsTheOldValueOfTheOtherLanes) {
  auto layout = layout_of(
      ".reg .b32 %r<5>; .reg .pred %p;\nmov.u32 %r0, 9; mov.u32 %r1, 1; setp.eq.u32 %p, %r1, 1; mov.u32 %r2, %r1;\n"
      "@%p mov.u32 %r0, %r2; mov.u32 %r3, %r0;");
  EXPECT_NE(layout.offsets[0], layout.offsets[1]);
  EXPECT_NE(layout.offsets[0], layout.offsets[2]);
}

TEST(RegisterLayout, AFunctionTooLargeToAnalyseGivesEveryRegisterItsOwnPlace) {
  std::string body = ".reg .b32 %r<1000000>;\n";
  for (int i = 0; i < 200; ++i)
    body += "L" + std::to_string(i) + ": mov.u32 %r" + std::to_string(i) + ", 1; bra L" + std::to_string(i) + ";\n";
  auto layout = layout_of(body);
  EXPECT_NE(layout.offsets[0], layout.offsets[1]);
  EXPECT_NE(layout.offsets[1], layout.offsets[999999]);
}

TEST(RegisterLayout, ALoopThatCarriesAValueSetOnlySometimesComputesRight) {
  // %r1 is written in even rounds only and read in odd ones, far from where it stands in the text.
  Machine machine;
  machine.load(
      kHeader +
      ".reg .b32 %r<9>; .reg .b64 %out; .reg .pred %p, %q;\nld.param.u64 %out, [out]; mov.u32 %r0, 0; mov.u32 %r5, 0;\n"
      "LOOP: and.b32 %r2, %r0, 1; setp.eq.u32 %p, %r2, 0; @%p bra EVEN;\n"
      "add.u32 %r5, %r5, %r1; bra NEXT;\nEVEN: mul.lo.u32 %r1, %r0, %r0;\n"
      "NEXT: add.u32 %r3, %r0, 1; mov.u32 %r0, %r3; setp.lt.u32 %q, %r0, 10; @%q bra LOOP;\nst.global.u32 [%out], %r5; "
      "ret; }\n");
  uint64_t out = machine.allocate(4);
  auto outcome = machine.run("k", {}, out);
  EXPECT_EQ(outcome.progress, Block::Progress::kFinished) << outcome.fault.text;
  EXPECT_EQ(machine.get<uint32_t>(out, 1)[0], 0u + 4 + 16 + 36 + 64);
}

}  // namespace
}  // namespace heddle::software
