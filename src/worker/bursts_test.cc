#include "worker/bursts.h"

#include <gtest/gtest.h>

namespace heddle::worker {
namespace {

using std::chrono::microseconds;

struct BurstsTest : ::testing::Test {
  static TimePoint at(int64_t time) { return TimePoint(microseconds(time)); }
  // A record at `begin`, work until `end`.
  void burst(int64_t begin, int64_t end) {
    bursts.begin(at(begin));
    bursts.work(at(begin), at(end));
    bursts.end();
  }
  Bursts bursts;
};

TEST_F(BurstsTest, BeginsWithItsFirstRecordAndEndsWithItsLastWork) {
  bursts.begin(at(100));
  EXPECT_TRUE(bursts.open());
  bursts.work(at(120), at(150));
  bursts.work(at(130), at(400));
  bursts.work(at(350), at(390));
  EXPECT_EQ(bursts.count(), 0u);
  bursts.end();
  EXPECT_FALSE(bursts.open());
  EXPECT_EQ(bursts.count(), 1u);
  EXPECT_EQ(bursts.largest().burst, microseconds(300));
  EXPECT_EQ(bursts.largest().gap, Duration::zero());
}

TEST_F(BurstsTest, WithoutWorkNoneCounts) {
  bursts.begin(at(100));
  bursts.end();
  bursts.end();
  EXPECT_EQ(bursts.count(), 0u);
}

TEST_F(BurstsTest, SmallGapsAreJoined) {
  burst(0, 1000);
  burst(2000, 3000);
  burst(5000, 6000);  // 2 ms behind: still the same
  burst(8001, 8101);  // a microsecond more: another
  EXPECT_EQ(bursts.count(), 4u);
  EXPECT_EQ(bursts.largest().burst, microseconds(1000));
  EXPECT_EQ(bursts.largest().merged, microseconds(6000));
  EXPECT_EQ(bursts.largest().gap, microseconds(2001));
}

TEST_F(BurstsTest, WorkWhoseRecordWasMissedOpensOne) {
  burst(0, 1000);
  bursts.work(at(500), at(1500));  // begins with the end of the last one: bursts do not overlap
  EXPECT_TRUE(bursts.open());
  bursts.end();
  EXPECT_EQ(bursts.count(), 2u);
  EXPECT_EQ(bursts.largest().burst, microseconds(1000));
  EXPECT_EQ(bursts.largest().merged, microseconds(1500));
}

TEST_F(BurstsTest, TheLargestAreForgotten) {
  constexpr int64_t kSecond = 1'000'000;
  burst(100 * kSecond, 100 * kSecond + 50'000);
  burst(102 * kSecond, 102 * kSecond + 10);
  EXPECT_EQ(bursts.largest().burst, microseconds(50'000));
  burst(104 * kSecond, 104 * kSecond + 20);  // in the window behind
  EXPECT_EQ(bursts.largest().burst, microseconds(50'000));
  burst(108 * kSecond, 108 * kSecond + 30);
  EXPECT_EQ(bursts.largest().burst, microseconds(30));
  burst(200 * kSecond, 200 * kSecond + 5);
  EXPECT_EQ(bursts.largest().burst, microseconds(5));
  EXPECT_EQ(bursts.count(), 5u);
}

}  // namespace
}  // namespace heddle::worker
