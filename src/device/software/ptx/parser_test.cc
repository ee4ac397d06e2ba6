#include "device/software/ptx/parser.h"

#include <gtest/gtest.h>

#include <cstring>

#include "device/software/ptx/declaration.h"

namespace heddle::ptx {
namespace {

constexpr const char* kHeader = ".version 8.0\n.target sm_80\n.address_size 64\n";

Module parsed(const std::string& text) {
  auto module = parse(kHeader + text);
  EXPECT_TRUE(module.has_value()) << module.error().text;
  return module ? *module : Module{};
}

Function body(const std::string& text) {
  Module module = parsed(".entry k(.param .u64 a)\n{\n" + text + "\n}\n");
  EXPECT_EQ(module.functions.size(), 1u);
  return module.functions.empty() ? Function{} : module.functions[0];
}

TEST(Parser, ReadsTheHeader) {
  auto module = parse(".version 9.0\n.target sm_75, debug\n.address_size 64\n");
  ASSERT_TRUE(module.has_value());
  EXPECT_EQ(module->version, "9.0");
  EXPECT_EQ(module->target, "sm_75");
}

TEST(Parser, RefusesOtherAddressSizes) {
  EXPECT_FALSE(parse(".version 8.0\n.address_size 32\n").has_value());
}

TEST(Parser, ReadsParametersInBothOfNvccsStyles) {
  Module module = parsed(
      ".visible .entry k(.param .u32 n, .param .u64 .ptr .global .align 4 p, .param .align 8 .b8 s[24])\n"
      ".maxntid 8, 8, 2\n.minnctapersm 2\n{ ret; }\n");
  const Function* k = module.find_function("k");
  ASSERT_NE(k, nullptr);
  ASSERT_EQ(k->parameter_count, 3u);
  EXPECT_EQ(k->parameter(0).size, 4u);
  EXPECT_TRUE(k->parameter(1).pointer);
  EXPECT_EQ(k->parameter(2).size, 24u);
  EXPECT_EQ(k->parameter(2).alignment, 8u);
  EXPECT_EQ(k->max_threads, 128u);
}

TEST(Parser, PrefersADefinitionToItsForwardDeclaration) {
  Module module = parsed(
      ".func (.param .b32 r) f(.param .b32 a);\n.extern .func (.param .b32 r) vprintf(.param .b64 f);\n"
      ".func (.param .b32 r) f(.param .b32 a)\n{ ret; }\n");
  EXPECT_TRUE(module.find_function("f")->defined);
  EXPECT_EQ(module.find_function("f")->result_count, 1u);
  EXPECT_FALSE(module.find_function("vprintf")->defined);
  EXPECT_EQ(module.find_function("absent"), nullptr);
}

TEST(Parser, ReadsGuardPairVectorAndAddressOperands) {
  Function f = body(
      ".reg .pred %p<3>; .reg .f32 %f<5>; .reg .b64 %rd<2>; .reg .b32 lonely;\n"
      "@!%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+-8];\n"
      "setp.lt.and.f32 %p1|%p2, %f1, 0f3F800000, !%p0;\n"
      "mov.u32 lonely, %tid.x;");
  ASSERT_EQ(f.error, "");
  ASSERT_EQ(f.code.size(), 3u);
  const Instruction& load = f.code[0];
  ASSERT_TRUE(load.guard && load.guard->negated);
  EXPECT_EQ(load.guard->predicate, 1u);
  EXPECT_EQ(load.name(), "ld.global.v2.f32");
  EXPECT_EQ(load.operands[0].kind, Operand::Kind::kVector);
  EXPECT_EQ(load.operands[1].kind, Operand::Kind::kAddress);
  EXPECT_EQ(static_cast<int64_t>(load.operands[1].literal.bits), -8);
  const Instruction& compare = f.code[1];
  EXPECT_EQ(compare.operands[0].kind, Operand::Kind::kPair);
  EXPECT_EQ(compare.operands[2].literal.bits, 0x3F800000u);
  EXPECT_TRUE(compare.operands[3].negated);
  EXPECT_EQ(f.code[2].operands[1].name, "%tid.x");
}

TEST(Parser, ReadsTexturesWithTheirCoordinates) {
  Function f = body(
      ".reg .pred %p<2>; .reg .f32 %f<9>; .reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
      "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p1, [%rd1, {%f5, 0f3F800000}];\n"
      "sust.b.1d.b32.trap [%rd1, %r1], {%r0};");
  ASSERT_EQ(f.error, "");
  ASSERT_EQ(f.code.size(), 2u);
  const Operand& values = f.code[0].operands[0];
  ASSERT_EQ(values.kind, Operand::Kind::kPair);
  EXPECT_EQ(values.elements[0].elements.size(), 4u);
  const Operand& place = f.code[0].operands[1];
  ASSERT_EQ(place.kind, Operand::Kind::kImage);
  ASSERT_EQ(place.elements.size(), 2u);
  EXPECT_EQ(place.elements[1].elements[1].literal.bits, 0x3F800000u);
  EXPECT_EQ(f.code[1].operands[0].elements[1].kind, Operand::Kind::kRegister);
}

TEST(Parser, InnerScopesHaveRegistersVariablesAndLabelsOfTheirOwn) {
  Function f = body(
      ".reg .b32 r; bra OUT;\n"
      "{ .reg .b64 r; .param .b32 x; L: mov.b64 r, r; bra L; st.param.b32 [x], 1; }\n"
      "{ .param .b64 x; L: bra L; st.param.b64 [x+4], r; bra OUT; }\n"
      "OUT: ret;");
  ASSERT_EQ(f.error, "");
  ASSERT_EQ(f.code.size(), 8u);
  auto target = [&](size_t i) { return f.labels[f.code[i].operands[0].index]; };
  EXPECT_EQ(target(0), 7u);
  EXPECT_EQ(f.code[1].operands[0].index, 1u);
  EXPECT_EQ(target(2), 1u);
  EXPECT_EQ(target(4), 4u);
  EXPECT_EQ(f.code[3].operands[0].elements[0].index, 1u);
  EXPECT_EQ(f.code[5].operands[0].elements[0].index, 2u);
  EXPECT_EQ(target(6), 7u);
}

TEST(Parser, ReadsBranchTables) {
  Function f = body(".reg .b32 %r<2>;\nTS: .branchtargets\nA,\nB;\nbrx.idx %r1, TS;\nA: trap;\nB: ret;");
  ASSERT_EQ(f.error, "");
  ASSERT_EQ(f.code[0].operands[1].kind, Operand::Kind::kTable);
  const auto& table = f.branch_tables[f.code[0].operands[1].index];
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(f.labels[table[0]], 1u);
  EXPECT_EQ(f.labels[table[1]], 2u);
}

TEST(Parser, ReadsACallSequence) {
  Function f = body(
      ".reg .b32 %r<2>;\n{ .param .b64 p0; .param .b32 r0;\ncall.uni (r0), callee, (p0);\n"
      "ld.param.b32 %r1, [r0]; }");
  ASSERT_EQ(f.error, "");
  const Instruction& call = f.code[0];
  ASSERT_EQ(call.operands.size(), 3u);
  EXPECT_EQ(call.operands[0].kind, Operand::Kind::kList);
  EXPECT_EQ(call.operands[1].name, "callee");
  EXPECT_EQ(call.operands[2].elements.size(), 1u);
}

TEST(Parser, ABodyThatCannotBeReadFailsItsFunctionOnly) {
  Module module = parsed(".entry bad() {\n .tragedy;\n { ret; } }\n.entry good() { ret; }\n");
  EXPECT_NE(module.find_function("bad")->error.find("line 5"), std::string::npos);
  EXPECT_EQ(module.find_function("good")->error, "");
  EXPECT_EQ(module.find_function("good")->code.size(), 1u);
}

TEST(Parser, NamesWhatIsUndeclared) {
  EXPECT_NE(body("bra NOWHERE;").error.find("NOWHERE"), std::string::npos);
  EXPECT_NE(body("@%p9 ret;").error.find("%p9"), std::string::npos);
}

TEST(Parser, SkipsDebugInformation) {
  Module module = parsed(
      ".file 1 \"a.cu\", 12, 34\n.entry k() {\n .loc 1 2 3, function_name $L__1, inlined_at 1 2 3\n ret;\n }\n"
      ".section .debug_str {\n.b8 1,2\n}\n");
  EXPECT_EQ(module.find_function("k")->code.size(), 1u);
}

TEST(Parser, RefusesAHostileRegisterCountAndVariableSize) {
  EXPECT_FALSE(body(".reg .b32 %r<4000000000>;").error.empty());
  EXPECT_FALSE(body(".reg .b32 %a<1000000>, %b<1000000>;").error.empty());
  EXPECT_FALSE(parse(".global .b8 x[1099511627776][1099511627776];").has_value());
  EXPECT_FALSE(body(std::string(1000, '{')).error.empty());
}

TEST(Variable, WritesItsInitialValueWithAddressesAndBytesOfAddresses) {
  Module module = parsed(
      ".global .align 8 .u64 table[3] = {1, generic(x)+8, y};\n"
      ".const .align 4 .b8 bytes[4] = {0xFF(x), 0xFF00(x), 7};\n.global .f32 f[2] = {0f3F800000, 2.0};\n");
  auto resolve = [](std::string_view name) -> std::optional<uint64_t> {
    if (name == "x") return 0x1234;
    if (name == "y") return 0x5678;
    return std::nullopt;
  };
  uint64_t table[3];
  ASSERT_TRUE(write_initial_value(module.variables[0], resolve, std::as_writable_bytes(std::span(table))));
  EXPECT_EQ(table[0], 1u);
  EXPECT_EQ(table[1], 0x123Cu);
  EXPECT_EQ(table[2], 0x5678u);
  uint8_t bytes[4];
  ASSERT_TRUE(write_initial_value(module.variables[1], resolve, std::as_writable_bytes(std::span(bytes))));
  EXPECT_EQ(bytes[0], 0x34);
  EXPECT_EQ(bytes[1], 0x12);
  EXPECT_EQ(bytes[2], 7);
  EXPECT_EQ(bytes[3], 0);
  float floats[2];
  ASSERT_TRUE(write_initial_value(module.variables[2], resolve, std::as_writable_bytes(std::span(floats))));
  EXPECT_EQ(floats[0], 1.0f);
  EXPECT_EQ(floats[1], 2.0f);
}

TEST(Variable, ReportsASymbolWithoutAddress) {
  Module module = parsed(".global .u64 p = missing;\n");
  uint64_t room;
  auto status = write_initial_value(
      module.variables[0], [](std::string_view) { return std::nullopt; }, std::as_writable_bytes(std::span(&room, 1)));
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().text.find("missing"), std::string::npos);
}

TEST(Variable, RefusesMoreInitialisersThanItHolds) {
  EXPECT_FALSE(parse(".global .u32 x[2] = {1, 2, 3};").has_value());
  EXPECT_EQ(parsed(".global .u32 x[] = {1, 2, 3};").variables[0].size, 12u);
}

}  // namespace
}  // namespace heddle::ptx
