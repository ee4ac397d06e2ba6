#include "cli/top/top_view.h"

#include <gmock/gmock.h>

namespace heddle::cli {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

Json usage(uint64_t busy_ns) {
  return {{"busy_ns", busy_ns}, {"bursts", 3}};
}

Json session(uint64_t id, uint64_t job, uint64_t device) {
  const Json task{{"state", "running"}, {"device", device}, {"memory", 1 << 20}, {"waited_ns", 5}, {"reason", "free"}};
  return {{"session", id}, {"job", job}, {"tasks", Json::array({task})}};
}

Json job(uint64_t id, uint64_t busy_ns) {
  return {{"job", id}, {"name", "job" + std::to_string(id)}, {"usage", usage(busy_ns)}};
}

Json device(uint64_t id, uint64_t busy_ns) {
  return {{"device", id}, {"name", "P100"}, {"memory", 64 << 20}, {"usage", usage(busy_ns)}};
}

// Of two devices; the second was used for `busy_ns`.
TopSample sample(int at, uint64_t busy_ns, const Json& sessions, const Json& jobs) {
  TopSample made;
  made.at = TimePoint(seconds(at));
  made.devices = {{"devices", Json::array({device(0, 0), device(1, busy_ns)})}};
  made.ps = {{"sessions", sessions}, {"jobs", jobs}, {"hidden_sessions", 0}};
  return made;
}

constexpr uint64_t kSecond = 1'000'000'000;

TEST(Top, SharesAreThoseOfTheInterval) {
  const auto before = sample(10, 8 * kSecond, Json::array({session(1, 7, 1)}), Json::array({job(7, 5 * kSecond)}));
  const auto now = sample(12, 9 * kSecond, Json::array({session(1, 7, 1)}), Json::array({job(7, 6 * kSecond)}));
  const Json shown = top_object(before, now);
  EXPECT_EQ(shown["interval_ns"], 2 * kSecond);
  EXPECT_EQ(shown["jobs"][0]["busy"], 0.5);
  EXPECT_EQ(shown["devices"][0]["busy"], 0.0);
  EXPECT_EQ(shown["devices"][1]["busy"], 0.5);
  EXPECT_THAT(top_text(shown, 0, 0), HasSubstr("50%"));
}

TEST(Top, TheFirstLookHasNoShares) {
  const auto now = sample(12, kSecond, Json::array({session(1, 7, 1)}), Json::array({job(7, 6 * kSecond)}));
  const Json shown = top_object({}, now);
  EXPECT_TRUE(shown["jobs"][0]["busy"].is_null());
  EXPECT_TRUE(shown["devices"][1]["busy"].is_null());
  EXPECT_EQ(shown["jobs"][0]["busy_ns"], 6 * kSecond);
}

TEST(Top, AJobThatHasJustComeHasNone) {
  const auto before = sample(10, 0, Json::array(), Json::array());
  const auto now = sample(11, kSecond, Json::array({session(1, 7, 0)}), Json::array({job(7, kSecond)}));
  const Json shown = top_object(before, now);
  EXPECT_TRUE(shown["jobs"][0]["busy"].is_null());
  EXPECT_EQ(shown["devices"][1]["busy"], 1.0);
}

// heddled was restarted, and has forgotten what sessions used that were over.
TEST(Top, ATotalThatShrinksIsNothing) {
  const auto before = sample(10, kSecond, Json::array(), Json::array({job(7, kSecond)}));
  const auto now = sample(11, 0, Json::array(), Json::array({job(7, 0)}));
  EXPECT_EQ(top_object(before, now)["jobs"][0]["busy"], 0.0);
  EXPECT_EQ(top_object(before, now)["jobs"][0]["state"], "idle");
}

TEST(Top, SaysWhatAJobWaitsFor) {
  const Json task{{"state", "waiting"}, {"memory", 1 << 20}, {"waited_ns", 3 * kSecond}, {"reason", "2 MiB of memory"}};
  const Json waits{{"session", 1}, {"job", 7}, {"tasks", Json::array({task})}};
  const Json shown = top_object({}, sample(11, 0, Json::array({waits}), Json::array({job(7, 0)})));
  EXPECT_EQ(shown["jobs"][0]["state"], "waiting");
  const std::string text = top_text(shown, 0, 0);
  EXPECT_THAT(text, HasSubstr("3.0 s"));
  EXPECT_THAT(text, HasSubstr("2 MiB of memory"));
}

TEST(Top, SaysWhatATaskDoesThatNeitherRunsNorWaits) {
  for (const char* state : {"placed", "starting", "stopping"}) {
    const Json task{{"state", state}, {"device", 1}, {"memory", 1 << 20}};
    const Json has{{"session", 1}, {"job", 7}, {"tasks", Json::array({task})}};
    const Json shown = top_object({}, sample(11, 0, Json::array({has}), Json::array({job(7, 0)})));
    EXPECT_EQ(shown["jobs"][0]["state"], state);
  }
}

TEST(Top, FitsTheTerminal) {
  const Json shown =
      top_object({}, sample(12, kSecond, Json::array({session(1, 7, 1)}), Json::array({job(7, kSecond)})));
  EXPECT_EQ(top_text(shown, 6, 2), "DEVICE\n     0\n");
  Json accents = shown;
  accents["devices"][0]["name"] = "\u00e9\u00e9";
  EXPECT_EQ(top_text(accents, 9, 2), "DEVICE  N\n     0  \n") << "cut in front of a character, not in it";
  EXPECT_THAT(top_text(shown, 0, 4), Not(HasSubstr("job7")));
  const auto nothing = sample(1, 0, Json::array(), Json::array());
  EXPECT_THAT(top_text(top_object({}, nothing), 0, 0), HasSubstr("nothing runs"));
}

}  // namespace
}  // namespace heddle::cli
