#include "policy/dispatch/time_window.h"

#include <gtest/gtest.h>

#include "policy/dispatch/recent_peak.h"
#include "policy/dispatch/test_device.h"

namespace heddle::policy {
namespace {

TimePoint at(double milliseconds) {
  return TimePoint(ms(milliseconds));
}

TEST(TimeWindow, ForgetsWhatLiesBehindIt) {
  TimeWindow window(ms(100));
  window.add(at(0), at(10), 1);
  window.add(at(50), at(70), 1);
  EXPECT_EQ(window.had(at(70)), 30e6);
  EXPECT_EQ(window.had(at(105)), 25e6);
  EXPECT_EQ(window.had(at(160)), 10e6);
  EXPECT_FALSE(window.empty());
  EXPECT_EQ(window.had(at(170)), 0);
  EXPECT_TRUE(window.empty());
}

TEST(TimeWindow, SharersHaveAPartEach) {
  TimeWindow window(ms(100));
  window.add(at(0), at(10), 1);
  window.add(at(10), at(30), 2);
  window.add(at(30), at(40), 1);
  EXPECT_EQ(window.had(at(40)), 30e6);
  EXPECT_EQ(window.had(at(120)), 15e6);
}

TEST(TimeWindow, SaysWhenItWillHaveFallen) {
  TimeWindow window(ms(100));
  window.add(at(0), at(10), 1);
  window.add(at(20), at(40), 2);
  EXPECT_EQ(window.falls_to(20e6, at(50)), at(50));
  EXPECT_EQ(window.falls_to(15e6, at(50)), at(105));
  EXPECT_EQ(window.falls_to(5e6, at(50)), at(130));
  EXPECT_EQ(window.falls_to(5e6, at(110)), at(130));
  EXPECT_EQ(window.falls_to(0, at(50)), at(140));
  EXPECT_EQ(window.had(at(130)), 5e6);
}

TEST(RecentPeak, ForgetsWhatIsOlderThanTwoOfItsWindows) {
  RecentPeak peak;
  EXPECT_EQ(peak.value(), Duration{});
  peak.add(ms(50), at(0));
  peak.add(ms(20), at(2000));
  EXPECT_EQ(peak.value(), ms(50));
  peak.add(ms(10), at(3000));
  EXPECT_EQ(peak.value(), ms(50));
  peak.add(ms(30), at(6500));
  EXPECT_EQ(peak.value(), ms(30));
  peak.add(ms(5), at(20'000));
  EXPECT_EQ(peak.value(), ms(5));
}

}  // namespace
}  // namespace heddle::policy
