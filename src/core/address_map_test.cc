#include "core/address_map.h"

#include <gtest/gtest.h>

#include <set>

namespace heddle {
namespace {

struct AddressMapTest : testing::Test {
  void SetUp() override {
    ASSERT_TRUE(map.add(0x100000, 0x10000, 1));
    ASSERT_TRUE(map.add(0x400000, 0x10000, 3));
    ASSERT_TRUE(map.add(0x110000, 0x10000, 2));  // beside the first
  }
  std::set<int> meant_by(uint64_t pointer) const {
    std::set<int> values;
    map.each_meant_by(pointer, [&](const auto& range) { values.insert(range.value); });
    return values;
  }
  AddressMap<int> map;
};

TEST_F(AddressMapTest, FindsWhatAnAddressLiesIn) {
  EXPECT_EQ(map.find(0x100000)->value, 1);
  EXPECT_EQ(map.find(0x10FFFF)->value, 1);
  EXPECT_EQ(map.find(0x110000)->value, 2);
  for (const uint64_t nowhere : {uint64_t{0}, uint64_t{0xFFFFF}, uint64_t{0x120000}, uint64_t{0x410000}, ~uint64_t{0}})
    EXPECT_EQ(map.find(nowhere), nullptr) << nowhere;
}

TEST_F(AddressMapTest, NothingOverlaps) {
  EXPECT_FALSE(map.add(0x10FFFF, 1, 9));
  EXPECT_FALSE(map.add(0xF0000, 0x10001, 9));
  EXPECT_FALSE(map.add(0x300000, 0x200000, 9));
  EXPECT_FALSE(map.add(0x300000, 0, 9));
  EXPECT_FALSE(map.add(~uint64_t{0}, 2, 9));
  EXPECT_TRUE(map.remove(0x110000));
  EXPECT_FALSE(map.remove(0x110000));
  EXPECT_FALSE(map.remove(0x100001));
  EXPECT_TRUE(map.add(0x110000, 0x2F0000, 4));  // up to the next
}

TEST_F(AddressMapTest, APointerMayStandJustBeforeOrBehindWhatItIsMeantFor) {
  EXPECT_EQ(meant_by(0x100000), std::set({1}));
  EXPECT_EQ(meant_by(0x100000 - 4), std::set({1}));
  EXPECT_EQ(meant_by(0x110000 - 4), std::set({1, 2}));
  EXPECT_EQ(meant_by(0x110000), std::set({2}));
  EXPECT_EQ(meant_by(0x120000), std::set({2}));
  EXPECT_EQ(meant_by(0x120001), std::set<int>());
  EXPECT_EQ(meant_by(0x400000 - AddressMap<int>::kSoon), std::set<int>());
}

}  // namespace
}  // namespace heddle
