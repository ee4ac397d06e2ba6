#include "policy/placement/sm_map.h"

#include <gtest/gtest.h>

#include <random>

#include "policy/test_pool.h"

namespace heddle::policy {
namespace {

// Alg. 2 as written: one block at a time, the next SM with space after the last one used.
class OneByOne {
 public:
  explicit OneByOne(const DeviceSpec& device) : left_(device.sms, device.sm.whole) {}

  bool fits(const SmShare& block, uint64_t count) const {
    uint64_t room = 0;
    for (const SmShare& left : left_) room += fitting(left, block);
    return room >= count;
  }

  std::vector<size_t> add(const SmShare& block, uint64_t count) {
    std::vector<size_t> where;
    for (; count > 0; --count) {
      size_t tried = 0;
      while (tried < left_.size() && fitting(left_[cursor_], block) == 0) {
        cursor_ = (cursor_ + 1) % left_.size();
        ++tried;
      }
      if (tried == left_.size()) break;
      move(block, cursor_, false);
      where.push_back(cursor_);
      cursor_ = (cursor_ + 1) % left_.size();
    }
    return where;
  }

  void remove(const SmShare& block, const std::vector<size_t>& where) {
    for (const size_t sm : where) move(block, sm, true);
  }

  const SmShare& left(size_t sm) const { return left_[sm]; }

 private:
  void move(const SmShare& block, size_t sm, bool back) {
    const auto by = [&](uint32_t amount) { return back ? amount : 0 - amount; };
    left_[sm].blocks += by(1);
    left_[sm].warps += by(block.warps);
    left_[sm].registers += by(block.registers);
    left_[sm].shared += by(block.shared);
  }

  std::vector<SmShare> left_;
  size_t cursor_ = 0;
};

struct Placed {
  SmShare block;
  std::vector<SmMap::Share> shares;
  std::vector<size_t> where;
};

void expect_same(const SmMap& map, const OneByOne& reference, uint32_t sms) {
  for (uint32_t sm = 0; sm < sms; ++sm) ASSERT_EQ(map.left(sm), reference.left(sm)) << "SM " << sm;
}

TEST(SmMap, DealsExactlyAsBlockByBlock) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    DeviceSpec device = p100(0);
    device.sms = static_cast<uint32_t>(1 + random() % 60);
    SmMap map(device);
    OneByOne reference(device);
    std::vector<Placed> placed;
    for (int step = 0; step < 200; ++step) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " step " << step);
      if (!placed.empty() && random() % 5 < 2) {
        const size_t which = random() % placed.size();
        map.remove(placed[which].block, placed[which].shares);
        reference.remove(placed[which].block, placed[which].where);
        placed.erase(placed.begin() + static_cast<std::ptrdiff_t>(which));
      } else {
        const SmShare block{1, static_cast<uint32_t>(1 + random() % 32), static_cast<uint32_t>(random() % 20000),
                            static_cast<uint32_t>(random() % 3 ? 0 : random() % 30000)};
        const uint64_t count = 1 + random() % (random() % 2 ? 400 : 20);
        ASSERT_EQ(map.fits(block, count), reference.fits(block, count));
        // More than fits is dealt as far as it goes; where the round then stands is of no consequence, as nothing fits.
        if (!map.fits(block, count)) continue;
        placed.push_back({block, map.add(block, count), reference.add(block, count)});
      }
      ASSERT_NO_FATAL_FAILURE(expect_same(map, reference, device.sms));
    }
    for (const Placed& each : placed) map.remove(each.block, each.shares);
    EXPECT_EQ(map.runs(), 1u);
    EXPECT_EQ(map.left(0), device.sm.whole);
  }
}

TEST(SmMap, MoreThanFitsIsDealtAsFarAsItGoes) {
  SmMap map(p100(0));
  const SmShare block{1, 40, 0, 0};
  EXPECT_FALSE(map.fits(block, 57));
  const auto shares = map.add(block, 1000);
  EXPECT_EQ(map.left(0).warps, 24u);
  EXPECT_EQ(map.left(55).warps, 24u);
  EXPECT_FALSE(map.fits(block, 1));
  map.remove(block, shares);
  EXPECT_TRUE(map.fits(block, 56));
}

}  // namespace
}  // namespace heddle::policy
