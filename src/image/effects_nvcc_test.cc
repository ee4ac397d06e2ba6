// Effects of what nvcc makes of testdata/effects.cu: optimised, where they should be exact, and for a debugger, where
// every address goes through local memory and they must not miss anything.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "image/effects.h"
#include "image/fatbin.h"

namespace heddle::image {
namespace {

class NvccEffects : public testing::Test {
 protected:
  static std::vector<KernelEffects> read(const std::string& name) {
    std::ifstream file(std::string(HEDDLE_IMAGE_TEST_OUTPUTS) + "/" + name, std::ios::binary);
    const std::string fatbin{std::istreambuf_iterator<char>(file), {}};
    const auto images = read_fatbin(std::as_bytes(std::span(fatbin)));
    EXPECT_TRUE(images) << images.error().text;
    auto found = images ? effects(*images, 90) : tl::unexpected(images.error());
    EXPECT_TRUE(found) << found.error().text;
    return found ? *found : std::vector<KernelEffects>();
  }
  static KernelEffects kernel(const std::vector<KernelEffects>& all, const std::string& name) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const KernelEffects& k) { return k.name == name; });
    EXPECT_NE(found, all.end()) << name;
    return found == all.end() ? KernelEffects() : *found;
  }
  const std::vector<KernelEffects> optimised_ = read("effects.fatbin"), debugged_ = read("effects_debug.fatbin");
};

std::optional<VariableUse> use_of(const KernelEffects& kernel, const std::string& variable) {
  for (const VariableUse& use : kernel.variables) {
    if (use.name == variable) return use;
  }
  return std::nullopt;
}

TEST_F(NvccEffects, OfOptimisedCodeAreExact) {
  struct ExpectedEffects {
    const char* name;
    uint64_t read, written;
    bool atomics, reductions, observes;
  };
  const ExpectedEffects kExpected[] = {
      {"scale", 0b001, 0b010, false, false, false},    {"in_place", 0b11, 0b01, false, false, false},
      {"count", 0b11, 0b10, false, true, false},       {"append", 0b101, 0b110, true, false, false},
      {"last_block", 0b011, 0b110, true, false, true}, {"wait_for_flag", 0, 0b1, false, false, true},
      {"timed", 0, 0b1, false, false, true},           {"packed", 0, 0b1, false, false, false},
      {"put_on_shelf", 0, 0, false, false, false},     {"give_away", 0, 0b1, false, false, false},
  };
  for (const ExpectedEffects& expected : kExpected) {
    const KernelEffects k = kernel(optimised_, expected.name);
    EXPECT_EQ(k.unknown, "") << k.name;
    EXPECT_EQ(k.read, expected.read) << k.name;
    EXPECT_EQ(k.written, expected.written) << k.name;
    EXPECT_EQ(k.atomics, expected.atomics) << k.name;
    EXPECT_EQ(k.reductions, expected.reductions) << k.name;
    EXPECT_EQ(k.observes, expected.observes) << k.name;
    EXPECT_FALSE(k.writes_anything || k.may_read_anything()) << k.name;
    EXPECT_FALSE(k.allocates) << k.name;
    EXPECT_EQ(k.in_pieces, expected.name == std::string("packed") ? 0b1 : 0) << k.name;
    EXPECT_EQ(k.keeps_module_addresses, expected.name == std::string("give_away")) << k.name;
  }
  EXPECT_EQ(kernel(optimised_, "last_block").variables, (std::vector<VariableUse>{{"counter", true, true}}));
  EXPECT_EQ(kernel(optimised_, "wait_for_flag").variables, (std::vector<VariableUse>{{"flags", true, false}}));
  EXPECT_EQ(kernel(optimised_, "scale").variables, (std::vector<VariableUse>{{"factors", true, false}}));
}

TEST_F(NvccEffects, MissNothingWhetherOptimisedOrNot) {
  for (const auto& all : {optimised_, debugged_}) {
    EXPECT_TRUE(kernel(all, "scale").may_read(0) && kernel(all, "scale").may_write(1));
    EXPECT_TRUE(kernel(all, "in_place").may_read(0) && kernel(all, "in_place").may_write(0));
    EXPECT_TRUE(kernel(all, "count").may_read(0) && kernel(all, "count").may_write(1));
    EXPECT_TRUE(kernel(all, "append").atomics);
    for (const size_t parameter : {1, 2}) EXPECT_TRUE(kernel(all, "append").may_write(parameter));
    EXPECT_TRUE(kernel(all, "last_block").atomics && kernel(all, "last_block").observes);
    EXPECT_TRUE(kernel(all, "wait_for_flag").observes && kernel(all, "timed").observes);
    const KernelEffects grid = kernel(all, "across_the_grid");
    EXPECT_TRUE(grid.writes_anything && !grid.is_repeatable());
    EXPECT_TRUE(kernel(all, "packed").may_write(0));
    EXPECT_TRUE(kernel(all, "packed").in_pieces & 1 || kernel(all, "packed").writes_anything);
    const KernelEffects put = kernel(all, "put_on_shelf"), take = kernel(all, "from_shelf");
    EXPECT_TRUE(put.may_keep(0) && use_of(put, "shelf").value().written);
    EXPECT_TRUE(take.writes_anything && use_of(take, "shelf").value().read);
    EXPECT_TRUE(kernel(all, "give_away").keeps_module_addresses);
    EXPECT_TRUE(kernel(all, "make_shape").keeps_module_addresses);  // of its table of functions
    EXPECT_TRUE(kernel(all, "say").may_read(0));
    EXPECT_TRUE(kernel(all, "heap").allocates);
  }
}

}  // namespace
}  // namespace heddle::image
