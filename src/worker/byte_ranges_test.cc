#include "worker/byte_ranges.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace heddle::worker {
namespace {

TEST(ByteRangesTest, JoinsWhatTouches) {
  ByteRanges ranges({10, 20});
  ranges.add({30, 40});
  EXPECT_EQ(ranges.count(), 2u);
  ranges.add({20, 30});
  EXPECT_EQ(ranges, ByteRanges({10, 40}));
  ranges.add({5, 5});
  EXPECT_EQ(ranges.bytes(), 30u);
  EXPECT_TRUE(ranges.intersects({39, 50}));
  EXPECT_FALSE(ranges.intersects({40, 50}));
}

// Against sets of bits.
TEST(ByteRangesTest, CoversWhatIsWhole) {
  ByteRanges ranges({10, 20});
  EXPECT_TRUE(ranges.covers({10, 20}));
  EXPECT_TRUE(ranges.covers({12, 12}));
  EXPECT_FALSE(ranges.covers({9, 12}));
  ranges.add({30, 40});
  EXPECT_FALSE(ranges.covers({15, 35}));
  ranges.add({20, 30});
  EXPECT_TRUE(ranges.covers({15, 35}));
}

TEST(ByteRangesTest, DoesWhatSetsDo) {
  constexpr size_t kBytes = 48;
  using Bits = std::bitset<kBytes>;
  std::mt19937 random(1);
  const auto draw = [&](Bits& bits) {
    ByteRanges ranges;
    for (int i = 0; i < 4; ++i) {
      const uint64_t begin = random() % kBytes, end = begin + random() % (kBytes - begin + 1);
      ranges.add({begin, end});
      for (uint64_t at = begin; at < end; ++at) bits.set(at);
    }
    return ranges;
  };
  const auto bits_of = [](const ByteRanges& ranges) {
    Bits bits;
    for (const auto& range : ranges)
      for (uint64_t at = range.begin; at < range.end; ++at) bits.set(at);
    return bits;
  };
  for (int round = 0; round < 2000; ++round) {
    Bits a_bits, b_bits;
    const ByteRanges a = draw(a_bits), b = draw(b_bits);
    ASSERT_EQ(bits_of(a), a_bits);
    ASSERT_EQ(bits_of(a.intersection(b)), a_bits & b_bits);
    ASSERT_EQ(bits_of(a.without(b)), a_bits & ~b_bits);
    ByteRanges sum = a;
    sum.add(b);
    ASSERT_EQ(bits_of(sum), a_bits | b_bits);
    for (auto range = sum.begin(); range != sum.end() && range + 1 != sum.end(); ++range)
      ASSERT_LT(range->end, (range + 1)->begin);
  }
}

}  // namespace
}  // namespace heddle::worker
