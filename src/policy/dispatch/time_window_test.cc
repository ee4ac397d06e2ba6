#include "policy/dispatch/time_window.h"

#include <gtest/gtest.h>

#include "policy/dispatch/recent_peak.h"
#include "policy/dispatch/test_device.h"

namespace heddle::policy {
namespace {

TEST(TimeWindow, ForgetsWhatLiesBehindIt) {
  TimeWindow window(ms(100));
  window.add(moment(0), moment(10), 1);
  window.add(moment(50), moment(70), 1);
  EXPECT_EQ(window.had(moment(70)), 30e6);
  EXPECT_EQ(window.had(moment(105)), 25e6);
  EXPECT_EQ(window.had(moment(160)), 10e6);
  EXPECT_FALSE(window.empty());
  EXPECT_EQ(window.had(moment(170)), 0);
  EXPECT_TRUE(window.empty());
}

TEST(TimeWindow, SharersHaveAPartEach) {
  TimeWindow window(ms(100));
  window.add(moment(0), moment(10), 1);
  window.add(moment(10), moment(30), 2);
  window.add(moment(30), moment(40), 1);
  EXPECT_EQ(window.had(moment(40)), 30e6);
  EXPECT_EQ(window.had(moment(120)), 15e6);
}

TEST(TimeWindow, SaysWhenItWillHaveFallen) {
  TimeWindow window(ms(100));
  window.add(moment(0), moment(10), 1);
  window.add(moment(20), moment(40), 2);
  EXPECT_EQ(window.falls_to(20e6, moment(50)), moment(50));
  EXPECT_EQ(window.falls_to(15e6, moment(50)), moment(105));
  EXPECT_EQ(window.falls_to(5e6, moment(50)), moment(130));
  EXPECT_EQ(window.falls_to(5e6, moment(110)), moment(130));
  EXPECT_EQ(window.falls_to(0, moment(50)), moment(140));
  EXPECT_EQ(window.had(moment(130)), 5e6);
}

TEST(RecentPeak, ForgetsWhatIsOlderThanTwoOfItsWindows) {
  RecentPeak peak;
  EXPECT_EQ(peak.value(), Duration{});
  peak.add(ms(50), moment(0));
  peak.add(ms(20), moment(2000));
  EXPECT_EQ(peak.value(), ms(50));
  peak.add(ms(10), moment(3000));
  EXPECT_EQ(peak.value(), ms(50));
  peak.add(ms(30), moment(6500));
  EXPECT_EQ(peak.value(), ms(30));
  peak.add(ms(5), moment(20'000));
  EXPECT_EQ(peak.value(), ms(5));
}

}  // namespace
}  // namespace heddle::policy
