#include "device/software/ptx/link.h"

#include <gtest/gtest.h>

#include "device/software/ptx/parser.h"

namespace heddle::ptx {
namespace {

Module unit(const std::string& text) {
  auto module = parse(".version 9.0\n.target sm_80\n.address_size 64\n" + text);
  EXPECT_TRUE(module) << module.error().text;
  return std::move(*module);
}

Result<Module> linked(const std::string& first, const std::string& second) {
  std::vector<Module> units;
  units.push_back(unit(first));
  units.push_back(unit(second));
  return link(std::move(units));
}

TEST(Link, ADeclarationBecomesTheDefinitionOfAnotherUnit) {
  auto module = linked(".extern .func f;\n.extern .global .u32 v;\n.entry k() { call f; ret; }",
                       ".visible .func f { ret; }\n.visible .global .u32 v = 7;");
  ASSERT_TRUE(module) << module.error().text;
  EXPECT_EQ(module->functions.size(), 2u);
  EXPECT_TRUE(module->find_function("f")->defined);
  EXPECT_FALSE(module->find_variable("v")->external);
  EXPECT_EQ(module->find_variable("v")->initial.size(), 4u);
}

TEST(Link, ADefinitionStaysWhereALaterUnitDeclares) {
  auto module = linked(".visible .func f { ret; }", ".extern .func f;\n.entry k() { call f; ret; }");
  ASSERT_TRUE(module) << module.error().text;
  EXPECT_TRUE(module->find_function("f")->defined);
}

TEST(Link, OfWeakDefinitionsTheFirstStays) {
  auto module = linked(".weak .global .u32 v = 1;", ".weak .global .u32 v = 2;");
  ASSERT_TRUE(module) << module.error().text;
  EXPECT_EQ(std::to_integer<int>(module->find_variable("v")->initial[0]), 1);
}

TEST(Link, TwoStrongDefinitionsAreRefusedByName) {
  auto module = linked(".visible .func f { ret; }", ".visible .func f { ret; }");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kNotSupported);
  EXPECT_NE(module.error().text.find("'f'"), std::string::npos);
}

TEST(Link, DynamicSharedMemoryIsDeclaredEverywhere) {
  auto module = linked(".extern .shared .align 16 .b8 s[];", ".extern .shared .align 16 .b8 s[];");
  ASSERT_TRUE(module) << module.error().text;
  EXPECT_EQ(module->variables.size(), 1u);
}

}  // namespace
}  // namespace heddle::ptx
