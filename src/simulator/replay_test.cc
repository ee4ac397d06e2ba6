#include "simulator/replay.h"

#include <gmock/gmock.h>

#include <random>
#include <sstream>

#include "policy/learning.h"
#include "policy/placement/table.h"
#include "policy/record/recorded_scheduler.h"
#include "simulator/testing/text_log.h"
#include "simulator/world.h"

namespace heddle::simulator {
namespace {

using ::testing::HasSubstr;

ReplayOutcome replayed(const std::string& text) {
  std::istringstream log(text);
  auto outcome = replay(log, "log");
  EXPECT_TRUE(outcome) << outcome.error().text;
  return outcome ? std::move(*outcome) : ReplayOutcome{};
}

std::string why_not(const std::string& text) {
  std::istringstream log(text);
  const auto outcome = replay(log, "log");
  EXPECT_FALSE(outcome);
  return outcome ? "" : outcome.error().text;
}

// Jobs of several kinds, more than fit, on devices of two models.
std::string log_of(const char* policy, const char* dispatch) {
  Scenario node;
  node.policy = policy;
  node.dispatch = dispatch;
  node.horizon = std::chrono::seconds(10);
  node.devices = {*device_preset("P100"), *device_preset("P100"), *device_preset("V100")};
  for (uint32_t kind = 0; kind < 4; ++kind) {
    JobLine line;
    line.count = 6;
    line.every = std::chrono::milliseconds(40 + 30 * kind);
    line.random = true;
    line.shape.name = line.shape.app = std::string("kind % ") + char('a' + kind);
    line.shape.model = kind == 3 ? "V100" : "P100";
    line.shape.weight = 0.3 + kind;
    line.shape.request = 0.1 * kind;
    line.shape.memory = Bytes{(2 + 3 * kind) * kGiB};
    line.shape.need = {100 * (kind + 1), 256, 32, {}};
    line.shape.tasks = 3;
    line.shape.bursts = 5;
    line.shape.host = std::chrono::milliseconds(3 * kind);
    line.shape.busy = line.shape.kernel = std::chrono::milliseconds(7 + kind);
    node.jobs.push_back(line);
  }
  TextLog log;
  EXPECT_TRUE(World::run(node, &log));
  return log.text();
}

class EveryPolicy : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(EveryPolicy, DecidesTheSameAgain) {
  const auto [policy, dispatch] = GetParam();
  const ReplayOutcome outcome = replayed(log_of(policy, dispatch));
  EXPECT_EQ(outcome.schedulers, 1u);
  EXPECT_EQ(outcome.dispatches, std::string_view(dispatch) == "open" ? 0u : 3u);
  EXPECT_GT(outcome.answers, 20u);
  EXPECT_GT(outcome.inputs, outcome.answers / 2);
  EXPECT_FALSE(outcome.cut);
  EXPECT_EQ(outcome.different, 0u) << outcome.differences[0].logged << "\n" << outcome.differences[0].replayed;
}

INSTANTIATE_TEST_SUITE_P(Replay, EveryPolicy,
                         ::testing::Combine(::testing::Values("sa", "cg:2", "schedgpu", "mgb-sm", "mgb-warps", "grr",
                                                              "rtf", "guf", "guf:cpu"),
                                            ::testing::Values("open", "fs", "tfs", "las", "las:2", "token",
                                                              "token:overlap")));

TimePoint at_second(int64_t second) {
  return TimePoint(std::chrono::seconds(second));
}

// Of 16 GiB, the only one.
policy::DeviceSpec only_device() {
  return {.name = "one",
          .model = "one",
          .memory = Bytes{16 * kGiB},
          .sms = 1,
          .sm = {.whole = {.blocks = 32, .warps = 64}}};
}

// As heddled does: a task leaves its device, wants one, wants none after all, and is found again after a restart.
TEST(Replay, SwappedTasksAreDecidedTheSameAgain) {
  TextLog log;
  for (const bool restarted : {false, true}) {
    policy::RecordedScheduler scheduler("mgb-warps", *policy::make_placement("mgb-warps"), {only_device()}, {}, &log);
    const policy::TaskRequest task{{1}, {1}, {1}, 0, "", Bytes{10 * kGiB}, {1, 128, 0, {}}};
    scheduler.session_opened({1}, {1}, "one", {}, at_second(0));
    if (restarted) {
      ASSERT_TRUE(scheduler.adopt_swapped(task, at_second(0)));
    } else {
      scheduler.task_arrived(task, at_second(0));
      ASSERT_EQ(scheduler.decisions(at_second(0)).size(), 1u);
      scheduler.swapped_out({1}, at_second(1));
    }
    scheduler.resume_requested({1}, at_second(2));
    scheduler.resume_withdrawn({1}, at_second(3));
    EXPECT_TRUE(scheduler.decisions(at_second(3)).empty());
    scheduler.resume_requested({1}, at_second(4));
    ASSERT_EQ(scheduler.decisions(at_second(4)).size(), 1u);
  }
  const ReplayOutcome outcome = replayed(log.text());
  EXPECT_EQ(outcome.schedulers, 2u);
  EXPECT_EQ(outcome.answers, 3u);
  EXPECT_EQ(outcome.different, 0u);
}

// As heddled does: a task is launched with a part of its memory, gets some more, and is found again after a restart.
TEST(Replay, EagerTasksAreDecidedTheSameAgain) {
  TextLog log;
  for (const bool restarted : {false, true}) {
    policy::RecordedScheduler scheduler("mgb-warps", *policy::make_placement("mgb-warps"), {only_device()}, {}, &log);
    policy::TaskRequest eager{{2}, {2}, {2}, 0, "", Bytes{10 * kGiB}, {1, 128, 0, {}}};
    for (const uint64_t session : {1, 2, 3}) scheduler.session_opened({session}, {session}, "one", {}, at_second(0));
    scheduler.task_arrived({{1}, {1}, {1}, 0, "", Bytes{8 * kGiB}, {1, 128, 0, {}}}, at_second(0));
    if (restarted) {
      eager.on_host = Bytes{4 * kGiB};
      ASSERT_TRUE(scheduler.adopt(eager, {0}, at_second(0)));
      ASSERT_EQ(scheduler.decisions(at_second(0)).size(), 1u);
    } else {
      scheduler.task_arrived(eager, at_second(0));
      ASSERT_EQ(scheduler.decisions(at_second(0)).size(), 1u);
      scheduler.launched_eagerly({2}, {0}, Bytes{4 * kGiB}, at_second(1));
      ASSERT_EQ(scheduler.decisions(at_second(1)).size(), 1u);
    }
    scheduler.task_ended({1}, at_second(2));
    scheduler.promoted({2}, Bytes{3 * kGiB}, at_second(2));
    scheduler.returned_to_host({2}, Bytes{kGiB}, at_second(3));
    scheduler.host_memory_freed({2}, Bytes{kGiB}, at_second(3));
    scheduler.task_arrived({{3}, {3}, {3}, 0, "", Bytes{8 * kGiB}, {1, 128, 0, {}}}, at_second(4));
    ASSERT_EQ(scheduler.decisions(at_second(4)).size(), 1u);
  }
  const ReplayOutcome outcome = replayed(log.text());
  EXPECT_EQ(outcome.schedulers, 2u);
  EXPECT_EQ(outcome.answers, 5u);
  EXPECT_EQ(outcome.different, 0u);
}

// Of a job's 15 bursts each comes behind so much time on the host; who does not learn is not told.
TEST(Replay, WhatJobsComputeOnTheHostIsAnInput) {
  const std::string log = log_of("guf:cpu", "open");
  for (const char* computed : {" 0\n", " 45000000\n", " 90000000\n", " 135000000\n"})
    EXPECT_THAT(log, ::testing::ContainsRegex(std::string(" computed [0-9]+") + computed));
  EXPECT_THAT(log_of("gwtmin", "open"), ::testing::Not(HasSubstr(" computed ")));
}

// As heddled does: what was learned before a restart is told to the next scheduler, and placement goes by it.
TEST(Replay, WhatWasKnownIsKnownAgain) {
  TextLog log;
  std::vector<policy::KnownApp> known;
  std::string reason;
  for (int life = 0; life < 2; ++life) {
    policy::RecordedScheduler scheduler("rtf", *policy::make_placement("rtf"), {only_device()}, {}, &log);
    for (const policy::KnownApp& app : known) scheduler.remember(app);
    for (const uint64_t id : {1, 2}) {
      scheduler.session_opened({id}, {id}, "one", {}, at_second(0), {}, "an app");
      scheduler.task_arrived({{id}, {id}, {id}, 0, "", Bytes{kGiB}, {1, 128, 0, {}}}, at_second(0));
      const auto decided = scheduler.decisions(at_second(0));
      ASSERT_EQ(decided.size(), 1u);
      reason = decided[0].reason;
      scheduler.served({id}, {0}, {.busy = std::chrono::nanoseconds(1'000'000'007)});
      if (life == 0) scheduler.session_closed({id}, at_second(3));
    }
    known = policy::Learning::history(scheduler)->known();
  }
  EXPECT_THAT(reason, HasSubstr("least work expected"));
  EXPECT_THAT(log.text(), HasSubstr("learned 'an%20app 1 1000000007 "));
  const ReplayOutcome outcome = replayed(log.text());
  EXPECT_EQ(outcome.schedulers, 2u);
  EXPECT_EQ(outcome.answers, 4u);
  EXPECT_EQ(outcome.different, 0u) << outcome.differences[0].logged << "\n" << outcome.differences[0].replayed;
}

// As heddled does: one of two that wait for each other leaves, the other cannot when they do so again.
TEST(Replay, DeadlocksThatEndBySwappingAreDecidedTheSameAgain) {
  TextLog log;
  policy::RecordedScheduler scheduler("mgb-warps", *policy::make_placement("mgb-warps"), {only_device()},
                                      {.swaps = true}, &log);
  for (const uint64_t id : {1, 2}) {
    scheduler.session_opened({id}, {id}, "one", {}, at_second(0));
    scheduler.task_arrived({{id}, {id}, {id}, 0, "", Bytes{6 * kGiB}, {1, 128, 0, {}}}, at_second(0));
  }
  ASSERT_EQ(scheduler.decisions(at_second(0)).size(), 2u);
  for (const uint64_t id : {1, 2}) scheduler.extension_requested({id}, Bytes{5 * kGiB}, at_second(1));
  ASSERT_EQ(scheduler.decisions(at_second(1)).size(), 1u);
  scheduler.swapped_out({2}, at_second(2));
  scheduler.resume_requested({2}, at_second(2));
  ASSERT_EQ(scheduler.decisions(at_second(2)).size(), 1u);
  scheduler.memory_freed({1}, Bytes{6 * kGiB}, at_second(3));
  ASSERT_EQ(scheduler.decisions(at_second(3)).size(), 2u);  // the second is back, with all
  for (const uint64_t id : {1, 2}) scheduler.extension_requested({id}, Bytes{2 * kGiB}, at_second(4));
  ASSERT_EQ(scheduler.decisions(at_second(4)).size(), 1u);
  scheduler.stays({2}, "swap space is full", at_second(5));
  ASSERT_EQ(scheduler.decisions(at_second(5)).size(), 1u);  // refused
  const ReplayOutcome outcome = replayed(log.text());
  EXPECT_EQ(outcome.answers, 8u);
  EXPECT_EQ(outcome.different, 0u);
}

TEST(Replay, ShowsWhatIsDecidedOtherwise) {
  std::string log = log_of("mgb-warps", "fs");
  log.replace(log.find("'mgb-warps"), 10, "'schedgpu");
  const ReplayOutcome outcome = replayed(log);
  ASSERT_GT(outcome.different, 0u);
  ASSERT_FALSE(outcome.differences.empty());
  EXPECT_LE(outcome.differences.size(), 10u);
  EXPECT_THAT(outcome.differences[0].logged, HasSubstr("fewest"));
  EXPECT_THAT(outcome.differences[0].replayed, HasSubstr("the%20one%20device%20this%20policy%20uses"));
}

TEST(Replay, AnswersTooManyAndTooFewAreDifferent) {
  std::string log = log_of("mgb-warps", "open");
  const size_t first = log.find("=decided"), begin = log.rfind('\n', first) + 1, end = log.find('\n', first) + 1;
  const std::string answer = log.substr(begin, end - begin);
  std::string more = log, fewer = log;
  more.insert(end, answer);
  fewer.erase(begin, end - begin);
  EXPECT_EQ(replayed(more).different, 1u);
  EXPECT_EQ(replayed(more).differences[0].replayed, "");
  EXPECT_EQ(replayed(fewer).different, 1u);
  EXPECT_EQ(replayed(fewer).differences[0].logged, "");
}

// Wherever whoever wrote it ended, what is there is replayed: in a line, or before the answers to a decision.
TEST(Replay, LogMayEndAnywhere) {
  const std::string log = log_of("rtf", "tfs");
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    const size_t end = log.find('\n', 1 + random() % (log.size() - 2));
    EXPECT_EQ(replayed(log.substr(0, end)).different, 0u) << "in a line";
  }
  const size_t answer = log.rfind('\n', log.find("=decided", log.size() / 2)) + 1;
  const size_t question = log.rfind(" decide\n", answer) + 8;
  const ReplayOutcome outcome = replayed(log.substr(0, question));
  EXPECT_TRUE(outcome.cut);
  EXPECT_EQ(outcome.different, 0u);
}

// heddled was started again, or got another policy: the log goes on with a new scheduler.
TEST(Replay, LogMayHaveSeveralLives) {
  const std::string first = log_of("mgb-warps", "tfs");
  const ReplayOutcome outcome = replayed(first + log_of("sa", "fs"));
  EXPECT_EQ(outcome.schedulers, 2u);
  EXPECT_EQ(outcome.different, 0u);
  EXPECT_FALSE(outcome.cut);
  const size_t answer = first.rfind('\n', first.rfind("=decided")) + 1;
  const size_t question = first.rfind(" decide\n", answer) + 8;
  const ReplayOutcome killed = replayed(first.substr(0, question) + log_of("sa", "fs"));
  EXPECT_EQ(killed.different, 0u);
  EXPECT_TRUE(killed.cut);
}

TEST(Replay, WhatIsNoLogIsToldWithItsPlace) {
  const std::string log = log_of("sa", "fs");
  EXPECT_THAT(why_not(""), HasSubstr("log: it is empty"));
  EXPECT_THAT(why_not("hello\n"), HasSubstr("log:1: 'hello' is no line"));
  const std::string format = input_log_format() + "\n";
  EXPECT_THAT(why_not(format + "5 decide\n"), HasSubstr("log:2: 'decide' comes before a scheduler"));
  EXPECT_THAT(why_not(format + "0 scheduler 'best 1 0 1\n"), HasSubstr("log:2: "));
  EXPECT_THAT(why_not(format + "0 scheduler 'sa 1 0\n"), HasSubstr("log:2: 'scheduler' has other fields"));
  EXPECT_THAT(why_not(log + "7 end 1 2\n"), HasSubstr("'end' has other fields"));
  EXPECT_THAT(why_not(log + "7 turn 9\n"), HasSubstr("device 9 has no dispatch policy"));
  EXPECT_THAT(why_not(log + "7 open 900 1 'P%1 0 0 '\n"), HasSubstr("'open' has other fields"));
}

TEST(Replay, AnotherFormatIsRefusedByNumber) {
  const std::string log = log_of("sa", "fs");
  const std::string newer = stringf("0 format %u\n", kInputLogFormat + 1);
  const std::string both =
      stringf("format %u, and this heddle replays format %u", kInputLogFormat + 1, kInputLogFormat);
  EXPECT_THAT(why_not(newer), HasSubstr("log:1: here begins " + both));
  EXPECT_THAT(why_not(log + newer), HasSubstr(both)) << "another heddled went on with the file";
  const std::string numberless = log.substr(log.find('\n') + 1);
  EXPECT_THAT(why_not(numberless), HasSubstr("log:1: the log begins without the number of its format"));
  EXPECT_THAT(why_not(numberless), HasSubstr("before format 1"));
}

// Its last flush was left out, maybe with the answers to a decision; another heddled had a larger limit.
TEST(Replay, AFullLogSaysSoAndIsRight) {
  const std::string log = log_of("mgb-warps", "tfs");
  const size_t answer = log.rfind('\n', log.find("=decided", log.size() / 2)) + 1;
  const size_t question = log.rfind(" decide\n", answer) + 8;
  for (const std::string& rest : {std::string(), log}) {
    const ReplayOutcome outcome = replayed(log.substr(0, question) + "0 full 1234\n" + rest);
    EXPECT_EQ(outcome.full_at, Bytes{1234});
    EXPECT_EQ(outcome.different, 0u);
    EXPECT_TRUE(outcome.cut);
  }
  EXPECT_EQ(replayed(log).full_at, Bytes{});
}

}  // namespace
}  // namespace heddle::simulator
