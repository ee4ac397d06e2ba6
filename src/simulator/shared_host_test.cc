#include "simulator/shared_host.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace heddle::simulator {
namespace {

TimePoint at_ms(int64_t milliseconds) {
  return TimePoint{std::chrono::milliseconds(milliseconds)};
}
Duration for_ms(int64_t milliseconds) {
  return std::chrono::milliseconds(milliseconds);
}

TEST(SharedHost, WhoHasAProcessorTakesItsTime) {
  SharedHost host(2);
  host.add(1, for_ms(30), at_ms(0));
  host.add(2, for_ms(10), at_ms(5));
  EXPECT_EQ(host.next(), at_ms(15));
  EXPECT_EQ(host.take(at_ms(15)), 2u);
  EXPECT_EQ(host.next(), at_ms(30));
  EXPECT_EQ(host.take(at_ms(30)), 1u);
  EXPECT_FALSE(host.next());
}

TEST(SharedHost, ThreeOnTwoProcessorsTakeHalfAsLongAgain) {
  SharedHost host(2);
  for (const JobIndex job : {1, 2, 3}) host.add(job, for_ms(20), at_ms(0));
  EXPECT_EQ(host.next(), at_ms(30));
  EXPECT_EQ(host.take(at_ms(30)), 1u) << "who came first";
  EXPECT_EQ(host.next(), at_ms(30));
  EXPECT_EQ(host.take(at_ms(30)), 2u);
  EXPECT_EQ(host.take(at_ms(30)), 3u);
}

TEST(SharedHost, WhoComesAndGoesChangesTheOthersPace) {
  SharedHost host(1);
  host.add(1, for_ms(20), at_ms(0));
  const uint64_t version = host.version();
  host.add(2, for_ms(5), at_ms(10));  // both at half from here on
  EXPECT_NE(host.version(), version);
  EXPECT_EQ(host.next(), at_ms(20));
  EXPECT_EQ(host.take(at_ms(20)), 2u);
  EXPECT_EQ(host.next(), at_ms(25)) << "what was left at 10 was 10, of which 5 are done";
  EXPECT_EQ(host.take(at_ms(25)), 1u);
  host.add(3, for_ms(7), at_ms(1000));
  EXPECT_EQ(host.next(), at_ms(1007));
}

// Whatever comes when: all processors are at work while there are jobs for them.
TEST(SharedHost, DoesAllTheWorkThatThereIs) {
  constexpr uint32_t kProcessors = 3;
  std::mt19937 random(7);
  SharedHost host(kProcessors);
  std::map<JobIndex, Duration> here;
  Duration brought{};
  double could = 0;  // processors' nanoseconds, as many as there were jobs for
  TimePoint now{};
  const auto pass = [&](TimePoint to) {
    could += double((to - now).count()) * double(std::min<size_t>(kProcessors, here.size()));
    now = to;
  };
  for (JobIndex job = 0; job < 2000; ++job) {
    const TimePoint comes = now + std::chrono::microseconds(random() % 2000);
    for (auto next = host.next(); next && *next <= comes; next = host.next()) {
      pass(std::max(now, *next));
      here.erase(host.take(now));
    }
    pass(std::max(now, comes));
    const Duration length = std::chrono::microseconds(random() % 5000);
    host.add(job, length, now);
    here[job] = length;
    brought += length;
  }
  while (const auto next = host.next()) {
    pass(std::max(now, *next));
    ASSERT_EQ(here.erase(host.take(now)), 1u);
  }
  EXPECT_TRUE(here.empty());
  EXPECT_NEAR(could / double(brought.count()), 1, 1e-4) << "of rounding up to nanoseconds";
}

}  // namespace
}  // namespace heddle::simulator
