#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image/describe.h"
#include "image/mangle.h"

namespace heddle::image {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string module_of(const std::string& statements) {
  return "\n//\n// Generated\n//\n.version 9.0\n.target sm_80\n.address_size 64\n" + statements;
}

ModuleInfo described(const std::string& statements) {
  auto module = describe_ptx(module_of(statements));
  EXPECT_TRUE(module) << module.error().text;
  return module ? *module : ModuleInfo();
}

KernelInfo only_kernel(const std::string& statements) {
  const ModuleInfo module = described(statements);
  EXPECT_EQ(module.kernels.size(), 1u);
  return module.kernels.empty() ? KernelInfo() : module.kernels.front();
}

TEST(DescribePtx, ParametersAreAlignedByTypeOrByTheirOwnWord) {
  const KernelInfo kernel = only_kernel(R"(
.visible .entry k(
	.param .u8 k_param_0,
	.param .align 8 .b8 k_param_1[43],
	.param .u16 k_param_2,
	.param .v2 .f32 k_param_3,
	.param .align 16 .b8 k_param_4[32],
	.param .align 1 .b8 k_param_5[3]
) { ret; })");
  EXPECT_THAT(kernel.parameters, ElementsAre(Parameter{0, 1}, Parameter{8, 43}, Parameter{52, 2}, Parameter{56, 8},
                                             Parameter{64, 32}, Parameter{96, 3}));
  EXPECT_EQ(kernel.parameter_bytes, 99u);
}

TEST(DescribePtx, AlignmentAfterPtrIsThatOfThePointee) {
  const KernelInfo kernel = only_kernel(R"(
.visible .entry k(.param .u32 a, .param .u64 .ptr .align 1 b, .param .u64 .ptr .global .align 16 c, .param .u64 d) { ret; })");
  EXPECT_THAT(kernel.parameters, ElementsAre(Parameter{0, 4}, Parameter{8, 8}, Parameter{16, 8}, Parameter{24, 8}));
}

TEST(DescribePtx, WhereAddressesMayComeFrom) {
  const ModuleInfo plain = described(".global .u32 x = 3;\n.visible .entry k() { ret; }\n.extern .func g;");
  EXPECT_FALSE(plain.functions);
  EXPECT_FALSE(plain.variable("x")->holds_addresses);
  const ModuleInfo more = described(
      ".global .u32 x;\n.global .u64 p[2] = {0, generic(x)};\n.func f() { ret; }\n.visible .entry k() { ret; }");
  EXPECT_TRUE(more.functions);
  EXPECT_TRUE(more.variable("p")->holds_addresses);
  EXPECT_FALSE(more.variable("x")->holds_addresses);
}

TEST(DescribePtx, KernelsWithoutParametersWithOrWithoutParentheses) {
  const ModuleInfo module = described(".visible .entry a() { ret; }\n.entry b\n{ ret; }\n");
  ASSERT_EQ(module.kernels.size(), 2u);
  for (const KernelInfo& kernel : module.kernels) {
    EXPECT_TRUE(kernel.parameters.empty());
    EXPECT_EQ(kernel.parameter_bytes, 0u);
    EXPECT_EQ(kernel.registers, 0u);
    EXPECT_EQ(kernel.max_threads, 1024u);
  }
}

TEST(DescribePtx, DeclaredThreads) {
  EXPECT_EQ(only_kernel(".entry k() .maxntid 128, 1, 1 .minnctapersm 2 { ret; }").max_threads, 128u);
  EXPECT_EQ(only_kernel(".entry k()\n.maxntid 128\n.maxnreg 32\n{ ret; }").max_threads, 128u);
  EXPECT_EQ(only_kernel(".entry k() .pragma \"{;}\"; .reqntid 8, 8, 4 { ret; }").max_threads, 256u);
  EXPECT_EQ(only_kernel(".entry k() .maxntid 4294967296, 4294967296, 1 { ret; }").max_threads, 1024u);
}

TEST(DescribePtx, BodiesAreLeftWhereTheyEnd) {
  const ModuleInfo module = described(R"(
.visible .entry first(.param .u64 p) {
	.loc 1 20 3, function_name $L__info_string0, inlined_at 1 2 3
	// a brace } and a quote " in a comment
	/* another } */
	ld.param.v4.u8 {%rs2, %rs3, %rs4, %rs5}, [p];
	{ .reg .b32 temp; .param .b64 param0; call.uni f, (param0); }
	.pragma "}\"}";
	div.rn.f32 %f1, %f2, %f3; ret;
}
.visible .entry second() { ret; }
.section .debug_str { info: .b8 95 .b8 0 }
.file 1 "/a/path with }.cu", 1700000000, 100
.visible .entry third() { ret; })");
  ASSERT_EQ(module.kernels.size(), 3u);
  EXPECT_EQ(module.kernels[2].name, "third");
}

TEST(DescribePtx, StaticSharedIsWhatTheBodyDeclaresInStepsOf16) {
  const KernelInfo kernel = only_kernel(R"(
.extern .shared .align 16 .b8 dynamic[];
.entry k() {
	.shared .align 1 .b8 a[1];
	.shared .align 8 .b8 b[8];
	.shared .b32 c[2][3], d;
	.extern .shared .align 4 .b8 more[];
	mov.u32 %r1, dynamic; ld.shared.f32 %f1, [a]; st.shared.f32 [b], %f1; .reg .b32 %shared;
})");
  EXPECT_EQ(kernel.static_shared, 48u);  // 1, 8 at 8, 24 at 16, 4 at 40: 44
}

TEST(DescribePtx, ModuleSharedCountsForThoseThatReachIt) {
  const ModuleInfo module = described(R"(
.shared .align 8 .b8 common[264];
.func (.param .b32 r) inner(.param .b32 p) { .shared .align 4 .b8 tile[400]; ret; }
.func outer() { mov.u32 %r, common; call.uni (r), inner, (p); call.uni outer; ret; }
.entry direct() { ld.shared.f32 %f, [common+12]; }
.entry called() { call.uni outer; mov.u32 %r, common; }
.entry partly() { call.uni (r), inner, (p); }
.entry neither() { // common inner
  mov.u32 %commonly, 1; }
)");
  ASSERT_EQ(module.kernels.size(), 4u);
  EXPECT_EQ(module.kernels[0].static_shared, 272u);
  EXPECT_EQ(module.kernels[1].static_shared, 672u);
  EXPECT_EQ(module.kernels[2].static_shared, 400u);
  EXPECT_EQ(module.kernels[3].static_shared, 0u);
}

TEST(DescribePtx, UnitsReachEachOthersFunctions) {
  const std::string caller = module_of(".extern .func helper(); .entry k() { call.uni helper; }");
  const std::string callee = module_of(".visible .func helper() { .shared .b32 tile[10]; ret; }");
  const std::string_view units[] = {caller, callee};
  const auto module = describe_ptx_units(units);
  ASSERT_TRUE(module) << module.error().text;
  EXPECT_EQ(module->kernel("k")->static_shared, 48u);
}

TEST(DescribePtx, LocalDepotIsTheStack) {
  EXPECT_EQ(only_kernel(".entry k() { .local .align 8 .b8 __local_depot2[48]; .local_use x; }").local_bytes, 48u);
}

TEST(DescribePtx, VariablesOfEveryKind) {
  const ModuleInfo module = described(R"(
.const .align 4 .b8 coefficients[64];
.const .align 1 .b8 odd[5];
.visible .const .align 8 .f64 real = 0d3FF0000000000000;
.global .align 8 .b8 table[800] = {0, 0, 0xF0, 63};
.global .attribute(.managed) .align 4 .u32 managed_value = 4;
.global .align 8 .u64 message = generic($str);
.visible .global .align 16 .v4 .f32 vectors[2][3];
.global .f32 several, more[4] = {1.0, 2e-3}, last;
.global .u16 counted[] = {1, 2, 3};
.extern .global .align 4 .u32 elsewhere;
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.global .texref texture;
.weak .global .b64 weak;
.entry k() { ret; })");
  const auto size = [&](const char* name) { return module.variable(name) ? module.variable(name)->size : ~0ull; };
  EXPECT_EQ(size("coefficients"), 64u);
  EXPECT_TRUE(module.variable("coefficients")->constant);
  EXPECT_EQ(size("real"), 8u);
  EXPECT_EQ(size("table"), 800u);
  EXPECT_FALSE(module.variable("table")->constant);
  EXPECT_EQ(size("managed_value"), 4u);
  EXPECT_TRUE(module.variable("managed_value")->managed);
  EXPECT_EQ(size("message"), 8u);
  EXPECT_EQ(size("vectors"), 96u);
  EXPECT_EQ(size("several"), 4u);
  EXPECT_EQ(size("more"), 16u);
  EXPECT_EQ(size("last"), 4u);
  EXPECT_EQ(size("counted"), 6u);
  EXPECT_EQ(size("weak"), 8u);
  EXPECT_EQ(module.variable("elsewhere"), nullptr);
  EXPECT_EQ(module.variable("texture"), nullptr);
  EXPECT_EQ(module.kernels.at(0).constant_bytes, 80u);  // 64, 5, and 8 at 72
}

TEST(DescribePtx, ADeclarationWithoutABodyIsNoKernel) {
  EXPECT_TRUE(described(".visible .entry later(.param .u32 p);").kernels.empty());
}

TEST(DescribePtx, ErrorsNameTheLine) {
  const auto refused = [](const std::string& ptx) {
    const auto module = describe_ptx(ptx);
    return module ? Error{ErrorCode::kInternal, "accepted"} : module.error();
  };
  EXPECT_EQ(refused("").code, ErrorCode::kCorrupt);
  EXPECT_THAT(refused("hello").text, HasSubstr("'hello' where '.version'"));
  EXPECT_THAT(refused(".version 9.0\n\n.entry k() {").text, HasSubstr("line 3"));
  EXPECT_THAT(refused(".version 9.0\n.entry k(.param .q7 x) { }").text, HasSubstr("type '.q7'"));
  EXPECT_EQ(refused(".version 9.0\n.entry k(.param .q7 x) { }").code, ErrorCode::kNotSupported);
  EXPECT_EQ(refused(".version 9.0\n.entry k(.param .align 3 .b8 x[8]) { }").code, ErrorCode::kCorrupt);
  EXPECT_EQ(refused(".version 9.0\n.entry k(.param .b8 x[40000]) { }").code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(refused(".version 9.0\n.entry k(.param .b64 x[18446744073709551615]) { }").code, ErrorCode::kCorrupt);
  EXPECT_EQ(refused(".version 9.0\n.const .b8 a[18446744073709551615]; .const .b8 b[18446744073709551615];").code,
            ErrorCode::kLimitExceeded);
  EXPECT_EQ(refused(".version 9.0\n.global .u32 x = {1").code, ErrorCode::kCorrupt);
}

TEST(DescribePtx, SurvivesTruncationAndDamage) {
  const std::string ptx = module_of(R"(
.shared .align 8 .b8 common[264];
.global .attribute(.managed) .align 4 .u32 value[3] = {4, 0x5};
.func f() { .shared .b8 x[3]; }
.visible .entry k(.param .align 4 .b8 p[12], .param .u64 .ptr .align 1 q) .maxntid 16, 2, 1
{ .pragma "a\"b"; /* c */ call f; { st.shared.u32 [common], %r; } // d
})");
  ASSERT_TRUE(describe_ptx(ptx));
  size_t kernels = 0;
  const auto count = [&](std::string_view text) {
    if (const auto module = describe_ptx(text)) kernels = std::max(kernels, module->kernels.size());
  };
  read_prefixes(ptx, count);
  EXPECT_EQ(kernels, 0u);  // no prefix has the whole kernel
  read_damaged(ptx, 20'000, count);
  EXPECT_LE(kernels, 2u);
}

}  // namespace
}  // namespace heddle::image
