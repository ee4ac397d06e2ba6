#include "image/parameter_words.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace heddle::image {
namespace {

// A pointer, a number of 4 bytes, a struct of 24 bytes at 16.
const std::vector<Parameter> kLayout = {{0, 8}, {8, 4}, {16, 24}};

struct ParameterWords : testing::Test {
  void put(size_t offset, uint64_t word) { std::memcpy(block.data() + offset, &word, sizeof word); }
  std::vector<uint64_t> words(const KernelEffects& effects, bool written) const {
    std::vector<uint64_t> found;
    each_parameter_word(kLayout, effects, block, [&](const ParameterWord& word) {
      if (written ? word.written : word.read) found.push_back(word.value);
    });
    return found;
  }
  std::array<std::byte, 40> block{};
};

TEST_F(ParameterWords, AreThoseOfParametersThatAreReadOrWrittenThrough) {
  put(0, 10), put(16, 20), put(24, 30), put(32, 40);
  KernelEffects effects;
  effects.read = 0b001;
  effects.written = 0b100;
  EXPECT_EQ(words(effects, false), (std::vector<uint64_t>{10}));
  EXPECT_EQ(words(effects, true), (std::vector<uint64_t>{20, 30, 40}));
  effects.read = effects.written = ~uint64_t{0};
  EXPECT_EQ(words(effects, true), (std::vector<uint64_t>{10, 20, 30, 40}));  // none of 4 bytes
}

TEST_F(ParameterWords, OfAPackedStructMayLieAtAnyByte) {
  put(16 + 1, 77);
  KernelEffects effects;
  effects.written = effects.in_pieces = 0b100;
  const auto found = words(effects, true);
  EXPECT_EQ(found.size(), 17u);
  EXPECT_EQ(found[1], 77u);
}

TEST_F(ParameterWords, ThatAreNotThereAreLeftOut) {
  KernelEffects effects;
  effects.read = ~uint64_t{0};
  size_t count = 0;
  each_parameter_word(kLayout, effects, std::span(block).first(30), [&](const ParameterWord&) { ++count; });
  EXPECT_EQ(count, 2u);
}

}  // namespace
}  // namespace heddle::image
