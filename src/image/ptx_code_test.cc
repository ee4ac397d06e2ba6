#include "image/ptx_code.h"

#include <gtest/gtest.h>

namespace heddle::image {
namespace {

TEST(PtxCode, ReadsInstructionsPastLabelsPredicatesAndDirectives) {
  const PtxCode code = read_code(R"(
	.reg .b32 %r<3>;
	.pragma "nounroll";
$L__BB0_2:
	@!%p1 ld.global.L2::128B.v2.u32 {%r1, %r2}, [%rd1+16];
	ld.shared::cta.b64 %rd2, [buffer];
	add.s32 %r1, %r2, -4; // comment
	{ .param .b64 param0; st.param.b64 [param0+0], %rd1; }
	{ .param .b64 param0; st.param.b64 [param0+0], %rd2; })");
  ASSERT_EQ(code.instructions.size(), 5u);
  const PtxInstruction& load = code.instructions[0];
  EXPECT_EQ(load.name, "ld");
  EXPECT_TRUE(load.has(".global"));
  EXPECT_EQ(load.type(), ".u32");
  ASSERT_EQ(load.operands.size(), 2u);
  EXPECT_EQ(load.operands[0].names, (std::vector<std::string_view>{"%r1", "%r2"}));
  EXPECT_TRUE(load.operands[1].memory);
  EXPECT_TRUE(code.instructions[1].has(".shared"));
  EXPECT_EQ(code.instructions[1].type(), ".b64");
  EXPECT_NE(code.instructions[3].operands[0].names, code.instructions[4].operands[0].names);
}

TEST(PtxCode, ALineNumberEndsWithoutASemicolon) {
  const PtxCode code = read_code(R"(
	.loc 1 62 0
$L__func_begin14:
	.loc	1 62 0
	mov.u64 	%rd1, first;
	.loc 1 20 3, function_name $L__info_string0, inlined_at 1 2 3
	mov.u64 	%rd2, second;
	.loc 1 20 3, function_name $L__info_string0+16, inlined_at 1 2 3
	@%p1 mov.u64 	%rd3, third;
	.loc 1 7 1
	ret;)");
  ASSERT_EQ(code.instructions.size(), 4u);
  EXPECT_EQ(code.instructions[0].operands.at(1).names.at(0), "first");
  EXPECT_EQ(code.instructions[1].operands.at(1).names.at(0), "second");
  EXPECT_EQ(code.instructions[2].operands.at(1).names.at(0), "third");
}

}  // namespace
}  // namespace heddle::image
