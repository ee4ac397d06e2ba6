#include "cli/top/top_view.h"

#include <gmock/gmock.h>

namespace heddle::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kSecond = 1'000'000'000;

Json usage(uint64_t busy_ns) {
  return {{"busy_ns", busy_ns}, {"bursts", 3}};
}

Json task(const char* state, uint64_t device = 1) {
  return {{"state", state}, {"device", device}, {"memory", 1 << 20}, {"waited_ns", 5}, {"reason", "free"}};
}

Json with(Json object, const char* key, const Json& value) {
  object[key] = value;
  return object;
}

Json waits(Json task, const char* cause, const char* why, uint64_t for_ns) {
  return with(std::move(task), "wait", {{"cause", cause}, {"why", why}, {"for_ns", for_ns}});
}

Json session(uint64_t id, uint64_t job, const Json& tasks) {
  return {{"session", id}, {"job", job}, {"tasks", tasks}};
}
Json running(uint64_t id, uint64_t job, uint64_t device) {
  return session(id, job, Json::array({task("running", device)}));
}

Json job(uint64_t id, uint64_t busy_ns) {
  return {{"job", id},
          {"name", "/bin/job" + std::to_string(id)},
          {"uid", 1000},
          {"user", "ann"},
          {"usage", usage(busy_ns)}};
}

Json device(uint64_t id, uint64_t busy_ns) {
  return {{"device", id},   {"name", "P100"},   {"memory", 64 << 20},      {"used", 16 << 20},       {"free", 48 << 20},
          {"policy", "sa"}, {"dispatch", "fs"}, {"leases", Json::array()}, {"usage", usage(busy_ns)}};
}

// Of two devices; the second was used for `busy_ns`.
TopSample sample(uint64_t at, uint64_t busy_ns, const Json& sessions, const Json& jobs, uint64_t pid = 5) {
  return {{{"time_ns", at * kSecond},
           {"heddled",
            {{"version", "1.2"}, {"pid", pid}, {"uptime_ns", 3665 * kSecond}, {"policy", "sa"}, {"dispatch", "fs"}}},
           {"devices", Json::array({device(0, 0), device(1, busy_ns)})},
           {"sessions", sessions},
           {"jobs", jobs},
           {"hidden_sessions", 0}}};
}
const Json kNone = Json::array();

// One job, 7, with these tasks.
Json only(const Json& tasks) {
  return top_object({}, sample(11, 0, Json::array({session(1, 7, tasks)}), Json::array({job(7, 0)})))["jobs"][0];
}

TEST(Top, SharesAreThoseOfTheInterval) {
  const auto before = sample(10, 8 * kSecond, Json::array({running(1, 7, 1)}), Json::array({job(7, 5 * kSecond)}));
  const auto now = sample(12, 9 * kSecond, Json::array({running(1, 7, 1)}), Json::array({job(7, 6 * kSecond)}));
  const Json shown = top_object(before, now);
  EXPECT_EQ(shown["interval_ns"], 2 * kSecond);
  EXPECT_EQ(shown["jobs"][0]["busy"], 0.5);
  EXPECT_EQ(shown["devices"][0]["busy"], 0.0);
  EXPECT_EQ(shown["devices"][1]["busy"], 0.5);
  EXPECT_THAT(top_text(shown, 0, 0), HasSubstr("50%"));
}

TEST(Top, TheFirstLookHasNoShares) {
  const auto now = sample(12, kSecond, Json::array({running(1, 7, 1)}), Json::array({job(7, 6 * kSecond)}));
  const Json shown = top_object({}, now);
  EXPECT_TRUE(shown["jobs"][0]["busy"].is_null());
  EXPECT_TRUE(shown["devices"][1]["busy"].is_null());
  EXPECT_EQ(shown["jobs"][0]["busy_ns"], 6 * kSecond);
}

TEST(Top, AJobThatHasJustComeHasNone) {
  const auto before = sample(10, 0, kNone, kNone);
  const auto now = sample(11, kSecond, Json::array({running(1, 7, 0)}), Json::array({job(7, kSecond)}));
  const Json shown = top_object(before, now);
  EXPECT_TRUE(shown["jobs"][0]["busy"].is_null());
  EXPECT_EQ(shown["devices"][1]["busy"], 1.0);
}

TEST(Top, ATotalThatShrinksIsNothing) {
  const auto before = sample(10, kSecond, kNone, Json::array({job(7, kSecond)}));
  const auto now = sample(11, 0, kNone, Json::array({job(7, 0)}));
  EXPECT_EQ(top_object(before, now)["jobs"][0]["busy"], 0.0);
  EXPECT_EQ(top_object(before, now)["jobs"][0]["state"], "idle");
}

// heddled was restarted, and has forgotten what sessions used that were over.
TEST(Top, AnotherHeddledsFiguresAreNotCompared) {
  const auto before = sample(10, 0, kNone, Json::array({job(7, 0)}));
  const auto now = sample(11, kSecond, kNone, Json::array({job(7, kSecond)}), 6);
  EXPECT_TRUE(top_object(before, now)["jobs"][0]["busy"].is_null());
}

TEST(Top, SaysWhatAJobWaitsForAsHeddledTellsIt) {
  const Json job = only(Json::array({waits(task("waiting"), "SMs", "no room on 56 SMs", 3 * kSecond)}));
  EXPECT_EQ(job["state"], "waiting");
  EXPECT_EQ(job["wait"]["cause"], "SMs");
  const auto now = sample(
      11, 0,
      Json::array({session(1, 7, Json::array({waits(task("waiting"), "SMs", "no room on 56 SMs", 3 * kSecond)}))}),
      Json::array({Json{{"job", 7}, {"name", "/bin/x"}}}));
  const std::string text = top_text(top_object({}, now), 0, 0);
  EXPECT_THAT(text, HasSubstr("3.0 s  SMs  no room on 56 SMs"));
  EXPECT_THAT(text, HasSubstr("jobs 1, waiting 1"));
}

TEST(Top, TheTaskThatHasWaitedLongestSpeaksForTheJob) {
  const Json shortly = waits(task("running"), "the lease", "fs lends device 0 to job 5 (held)", kSecond / 10);
  const Json long_ago = waits(task("waiting for memory"), "memory", "2 MiB more", 4 * kSecond);
  for (const Json& tasks : {Json::array({shortly, long_ago}), Json::array({long_ago, shortly})}) {
    const Json job = only(tasks);
    EXPECT_EQ(job["wait"]["cause"], "memory");
    EXPECT_EQ(job["state"], "waiting");
    EXPECT_EQ(job["memory"], 2 << 20);
  }
  EXPECT_EQ(only(Json::array({shortly}))["state"], "running");
}

// heddled does not note since when a task waits for its own frees.
TEST(Top, AWaitWithoutABeginning) {
  Json held = waits(task("running"), "its own frees", "needs 8 MiB more", 0);
  held["wait"].erase("for_ns");
  const Json job = only(Json::array({held}));
  EXPECT_TRUE(job["wait"]["for_ns"].is_null());
  EXPECT_EQ(job["wait"]["cause"], "its own frees");
}

TEST(Top, AJobWithoutAWaitHasNone) {
  EXPECT_TRUE(only(Json::array({task("running")}))["wait"].is_null());
  EXPECT_TRUE(only(kNone)["wait"].is_null());
  EXPECT_EQ(only(Json::array({task("starting"), task("running")}))["state"], "starting");
}

TEST(Top, LeasesOfJobsAndDevices) {
  const auto leased = [](const char* state, uint64_t device) {
    return with(task("running", device), "lease", {{"state", state}, {"for_ns", kSecond / 5}});
  };
  const Json job = only(Json::array({leased("waits", 0), leased("held", 1), leased("idle", 2)}));
  EXPECT_EQ(job["lease"]["state"], "held");
  EXPECT_EQ(job["lease"]["device"], 1);
  TopSample now = sample(1, 0, kNone, kNone);
  now.whole["devices"][0]["leases"] = {{{"state", "draining"}, {"for_ns", kSecond / 10}, {"job", 3}, {"session", 4}},
                                       {{"state", "held"}, {"for_ns", kSecond / 5}}};
  EXPECT_THAT(top_text(top_object({}, now), 0, 0), HasSubstr("job 3 draining 0.1 s, another's held 0.2 s"));
}

TEST(Top, WhatWasAskedForStandsBesideWhatWasGot) {
  Json asks = job(7, kSecond);
  asks["weight"] = 3;
  asks["share"] = 0.25;
  asks["limit"] = 0.5;
  const auto before = sample(10, 0, kNone, Json::array({job(7, 0)}));
  const auto now = sample(12, 0, Json::array({running(1, 7, 1)}), Json::array({asks}));
  EXPECT_THAT(top_text(top_object(before, now), 0, 0),
              HasSubstr("  7  ann   job7     running       1       3  0.25 to 0.5  50%  -       1 MiB  -       -"));
}

// The whole, as people see it.
TEST(Top, Text) {
  const auto before = sample(10, 0, kNone, Json::array({job(7, 0)}));
  const auto now = sample(12, kSecond, Json::array({running(1, 7, 1)}), Json::array({job(7, kSecond)}));
  EXPECT_EQ(top_text(top_object(before, now), 0, 0),
            "heddled 1.2, up 1 h 1 min; policy sa, dispatch fs; jobs 1, waiting 0\n"
            "\n"
            "DEVICE  NAME  BUSY  USED    FREE    OF      TASKS  WARPS  LEASE  STATE\n"
            "     0  P100    0%  16 MiB  48 MiB  64 MiB      0    0/0  -      ok\n"
            "     1  P100   50%  16 MiB  48 MiB  64 MiB      0    0/0  -      ok\n"
            "\n"
            "JOB  USER  PROGRAM  STATE    DEVICE  WEIGHT  ASKED  GOT  LEASE  MEMORY  WAITED  FOR  WHY\n"
            "  7  ann   job7     running       1       1  -      50%  -       1 MiB  -       -\n");
}

TEST(Top, FitsTheTerminal) {
  const Json shown =
      top_object({}, sample(12, kSecond, Json::array({running(1, 7, 1)}), Json::array({job(7, kSecond)})));
  EXPECT_EQ(top_text(shown, 7, 4), "heddled\n\nDEVICE \n... 5 l\n");
  Json accents = shown;
  accents["devices"][0]["name"] = "\u00e9\u00e9";
  EXPECT_THAT(top_text(accents, 9, 0), HasSubstr("DEVICE  N\n     0  \n")) << "cut in front of a character, not in it";
  EXPECT_THAT(top_text(shown, 0, 4), Not(HasSubstr("job7")));
  EXPECT_THAT(top_text(shown, 0, 8), Not(HasSubstr("more"))) << "it is just long enough";
  EXPECT_THAT(top_text(top_object({}, sample(1, 0, kNone, kNone)), 0, 0), HasSubstr("nothing runs"));
}

TEST(Top, TenantsNamesAreShownAndNotObeyed) {
  Json named = job(7, 0);
  named["name"] = "x\x1b[2Jy\nz";
  const Json shown = top_object({}, sample(1, 0, kNone, Json::array({named})));
  EXPECT_THAT(top_text(shown, 0, 0), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace heddle::cli
