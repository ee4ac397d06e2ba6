// The `heddle` command's requests.

#include <set>

#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;

class CommandTest : public HouseholdTest {};

TEST_F(CommandTest, UnknownOrMalformedOnesAreAnsweredWithAnError) {
  start();
  EXPECT_THAT(house_->ask({{"command", "dance"}}).error().text, ::testing::HasSubstr("dance"));
  EXPECT_THAT(house_->ask({{"command", 3}}).error().text, ::testing::HasSubstr("text"));
  EXPECT_THAT(house_->ask(Json::array()).error().text, ::testing::HasSubstr("object"));
  EXPECT_THAT(house_->ask({{"command", "job"}, {"job", "x"}}).error().text, ::testing::HasSubstr("number"));
  EXPECT_THAT(house_->ask({{"command", "cancel"}, {"job", 999}}).error().text, ::testing::HasSubstr("no job 999"));
  EXPECT_THAT(house_->ask({{"command", "set_policy"}, {"policy", "best"}}).error().text,
              ::testing::HasSubstr("mgb-warps"));
}

TEST_F(CommandTest, DevicesShowThePool) {
  start();
  const auto devices = house_->ask({{"command", "devices"}});
  ASSERT_TRUE(devices);
  ASSERT_EQ((*devices)["devices"].size(), 2u);
  const Json& device = (*devices)["devices"][1];
  EXPECT_EQ(device["memory"], 64 * kMiB);
  EXPECT_EQ(device["kind"], "software");
  EXPECT_EQ(device["state"], "ok");
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][1]["warm_workers"] == 1; });
}

TEST_F(CommandTest, AJobLivesAsLongAsItsOpenerOrASession) {
  start();
  auto opener = protocol::connect_to(house_->socket());
  const auto job = Household::ask(*opener, {{"command", "job_open"}, {"name", "train"}, {"memory", 16 * kMiB}});
  ASSERT_TRUE(job);
  {
    TestClient client = opened((*job)["job"], (*job)["secret"]);
    EXPECT_EQ(client.welcome().budget_bytes, 16 * kMiB);
    opener->close();
    const Json ps = house_->wait_for("ps", [](const Json& answer) { return answer["jobs"].size() == 1; });
    EXPECT_EQ(ps["jobs"][0]["name"], "train");
  }
  TestClient another = opened();  // the same process: its session before is over, and with it the job
  const Json ps = house_->wait_for("ps", [](const Json& answer) { return answer["jobs"].size() == 1; });
  EXPECT_EQ(ps["jobs"][0]["name"], "test");
}

// As a program does whose greeting heddled died of, before it heard the answer.
TEST_F(CommandTest, AProgramThatGreetsAgainFindsItsJobAlthoughNobodyElseKeepsIt) {
  start();
  auto opener = protocol::connect_to(house_->socket());
  const auto job = Household::ask(*opener, {{"command", "job_open"}, {"name", "train"}, {"memory", 16 * kMiB}});
  ASSERT_TRUE(job);
  {
    const TestClient first = opened((*job)["job"], (*job)["secret"]);
    opener->close();
  }
  const TestClient again = opened((*job)["job"], (*job)["secret"]);
  EXPECT_EQ(again.welcome().budget_bytes, 16 * kMiB);
  const Json ps = house_->wait_for("ps", [](const Json& answer) { return answer["sessions"].size() == 1; });
  ASSERT_EQ(ps["jobs"].size(), 1);
  EXPECT_EQ(ps["jobs"][0]["job"], (*job)["job"]);
}

TEST_F(CommandTest, AJobIsShownWithWhatItAsksForOfADevice) {
  start();
  auto opener = protocol::connect_to(house_->socket());
  const auto refused = Household::ask(*opener, {{"command", "job_open"}, {"name", "a"}, {"weight", 1000}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, ::testing::HasSubstr("weight 1000, and limits.weight_of_job allows 100"));
  ASSERT_TRUE(Household::ask(
      *opener,
      {{"command", "job_open"}, {"name", "a"}, {"weight", 2}, {"share", 0.25}, {"limit", 0.5}, {"app", "bfs"}}));
  const TestClient alone = opened();
  const Json jobs = (*house_->ask({{"command", "ps"}}))["jobs"];
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0]["weight"], 2);
  EXPECT_EQ(jobs[0]["share"], 0.25);
  EXPECT_EQ(jobs[0]["limit"], 0.5);
  EXPECT_EQ(jobs[0]["app"], "bfs");
  EXPECT_EQ(jobs[1]["weight"], 1);
  EXPECT_EQ(jobs[1]["limit"], 1);
}

TEST_F(CommandTest, AUserFacingJobIsShownWithItsRequests) {
  start();
  auto opener = protocol::connect_to(house_->socket());
  const auto wrong = Household::ask(*opener, {{"command", "job_open"}, {"name", "a"}, {"slo_ns", 1'000'000u}});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().text, ::testing::HasSubstr("a batch job has no requests"));
  ASSERT_TRUE(Household::ask(*opener, {{"command", "job_open"}, {"name", "a"}, {"class", "user-facing"}}));
  ASSERT_TRUE(Household::ask(*opener, {{"command", "job_open"}, {"name", "b"}}));
  const Json jobs = (*house_->ask({{"command", "ps"}}))["jobs"];
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0]["class"], "user-facing");
  EXPECT_EQ(jobs[0]["slo_ns"], 200'000'000);
  EXPECT_EQ(jobs[0]["requests"]["count"], 0);
  EXPECT_EQ(jobs[1]["class"], "batch");
  EXPECT_FALSE(jobs[1].contains("slo_ns"));
  EXPECT_FALSE(jobs[1].contains("requests"));
}

TEST_F(CommandTest, AJobsOtherMemoryIsToldAndItsOwnIsLeftToTheClient) {
  start();
  auto opener = protocol::connect_to(house_->socket());
  const auto job = Household::ask(*opener, {{"command", "job_open"}, {"name", "a"}, {"memory", 16 * kMiB}});
  TestClient first = opened((*job)["job"], (*job)["secret"]);
  TestClient second = opened((*job)["job"], (*job)["secret"]);
  ASSERT_TRUE(first.declare(1, first.at(0), Bytes{8 * kMiB}));
  ASSERT_TRUE(first.begin(1));
  ASSERT_TRUE(first.wait_binding(Binding::kBound));
  const auto others_of = [](TestClient& client) {
    (void)client.ask(protocol::MemoryInfo{});
    const auto told = client.socket().expect<protocol::MemoryAnswer>(TestClient::kPatience);
    return told ? told->others_bytes : ~uint64_t{0};
  };
  EXPECT_EQ(others_of(first), 0u);
  EXPECT_EQ(others_of(second), 8 * kMiB);
}

TEST_F(CommandTest, WhatASessionDeclaredIsSummedOverItsDevices) {
  start();
  TestClient client = opened();
  const auto declared = [&] { return (*house_->ask({{"command", "ps"}}))["sessions"][0]["declared"]; };
  EXPECT_EQ(declared(), Json({{"tasks", 0}, {"bytes", 0}, {"used", 0}, {"beside", 0}, {"extensions", 0}}));
  protocol::TaskTotals& first = client.header().task_totals;
  first.tasks = 2;
  first.declared = 16 * kMiB;
  first.used = 12 * kMiB;
  ASSERT_TRUE(client.open_device(1));
  protocol::TaskTotals& second = client.header().task_totals;
  second.tasks = 1;
  second.declared = kMiB;
  second.beside = 4 * kMiB;
  second.extensions = 3;
  EXPECT_EQ(declared(),
            Json({{"tasks", 3}, {"bytes", 17 * kMiB}, {"used", 12 * kMiB}, {"beside", 4 * kMiB}, {"extensions", 3}}));
}

TEST_F(CommandTest, CancelEndsTheJobsWorkAndTellsItsOpener) {
  start();
  auto opener = protocol::connect_to(house_->socket());
  const auto job = Household::ask(*opener, {{"command", "job_open"}, {"name", "a"}});
  TestClient client = opened((*job)["job"], (*job)["secret"]);
  ASSERT_TRUE(client.declare(1, client.at(0), Bytes{8 * kMiB}));
  ASSERT_TRUE(client.begin(1));
  ASSERT_TRUE(client.wait_binding(Binding::kBound));
  ASSERT_TRUE(house_->ask({{"command", "cancel"}, {"job", (*job)["job"]}}));
  EXPECT_TRUE(client.wait_binding(Binding::kFailed));
  EXPECT_THAT(client.error_text(), ::testing::HasSubstr("cancelled"));
  const auto event = opener->expect<protocol::Command>(TestClient::kPatience);
  ASSERT_TRUE(event);
  EXPECT_THAT(protocol::get_text(event->text), ::testing::HasSubstr("cancelled"));
  EXPECT_FALSE(house_->client((*job)["job"], (*job)["secret"]));
}

TEST_F(CommandTest, AJobSaysWhatItWaitsFor) {
  start(kOneDevice);
  TestClient first = running(Bytes{40 * kMiB});
  auto opener = protocol::connect_to(house_->socket());
  const auto job = Household::ask(*opener, {{"command", "job_open"}, {"name", "a"}});
  TestClient client = opened((*job)["job"], (*job)["secret"]);
  ASSERT_TRUE(client.declare(1, client.at(0), Bytes{40 * kMiB}));
  ASSERT_TRUE(client.begin(1));
  ASSERT_TRUE(client.wait_binding(Binding::kWaiting));
  const auto state = house_->ask({{"command", "job"}, {"job", (*job)["job"]}});
  ASSERT_TRUE(state);
  EXPECT_GT((*state)["waiting_ns"], 0);
  EXPECT_THAT((*state)["waiting_for"], ::testing::HasSubstr("40"));
  const Json wait = (*state)["sessions"][0]["tasks"][0]["wait"];
  EXPECT_EQ(wait["cause"], "memory");
  EXPECT_THAT(wait["why"], ::testing::HasSubstr("most is free on device 0"));
  EXPECT_GT(wait["for_ns"], 0);
  const auto ps = house_->ask({{"command", "ps"}});
  ASSERT_TRUE(ps);
  for (const Json& session : (*ps)["sessions"])
    EXPECT_EQ(session["tasks"][0].contains("wait"), session["job"] == (*job)["job"]) << session;
}

TEST_F(CommandTest, TheWholeIsOfOneMoment) {
  start(kOneDevice);
  const TestClient client = running(Bytes{40 * kMiB});
  const auto page = house_->ask({{"command", "ps"}});
  ASSERT_TRUE(page);
  EXPECT_FALSE(page->contains("devices"));
  const auto whole = house_->ask({{"command", "ps"}, {"whole", true}});
  ASSERT_TRUE(whole);
  EXPECT_EQ((*whole)["jobs"].size(), 1u);
  EXPECT_EQ((*whole)["devices"][0]["tasks"], 1);
  EXPECT_EQ((*whole)["devices"][0]["policy"], (*whole)["heddled"]["policy"]);
  EXPECT_EQ((*whole)["devices"][0]["leases"], Json::array());  // open: nobody is lent it
  EXPECT_GT((*whole)["time_ns"], 0);
}

TEST_F(CommandTest, TheTraceTellsATasksLife) {
  start();
  const auto before = house_->ask({{"command", "trace"}, {"since", nullptr}});
  ASSERT_TRUE(before);
  EXPECT_TRUE((*before)["events"].empty());
  TestClient client = running(Bytes{8 * kMiB});
  finish(client);
  const auto trace = house_->ask({{"command", "trace"}, {"since", (*before)["next"]}});
  ASSERT_TRUE(trace);
  std::vector<std::string> kinds;
  for (const Json& event : (*trace)["events"]) kinds.push_back(event["kind"]);
  EXPECT_THAT(kinds, ::testing::ElementsAre("task_arrived", "task_granted", "task_ended"));
  EXPECT_EQ((*trace)["events"][1]["memory"], 8 * kMiB);
  EXPECT_EQ((*trace)["events"][2]["launches"], 7);
  EXPECT_EQ((*trace)["events"][2]["busy_ns"], 7'000);
}

// Of each task its own part goes into the trace; sessions and jobs show all of it.
TEST_F(CommandTest, WhatAWorkerMeasuredIsToldOfTasksSessionsAndJobs) {
  start();
  TestClient client = running(Bytes{8 * kMiB});
  finish(client);
  ASSERT_TRUE(client.declare(2, client.at(0), Bytes{4 * kMiB}));
  ASSERT_TRUE(client.begin(2));
  ASSERT_TRUE(client.wait_binding(Binding::kBound));
  client.record(protocol::RecordType::kFree, 2);
  client.record(protocol::RecordType::kTaskEnd, 2);
  ASSERT_TRUE(client.wait_binding(Binding::kUnbound));
  const auto trace = house_->ask({{"command", "trace"}, {"since", 0}});
  ASSERT_TRUE(trace);
  for (const Json& event : (*trace)["events"]) EXPECT_EQ(event["launches"], event["kind"] == "task_ended" ? 7 : 0);
  const auto ps = house_->ask({{"command", "ps"}});
  ASSERT_TRUE(ps);
  EXPECT_EQ((*ps)["sessions"][0]["usage"]["launches"], 14);
  EXPECT_EQ((*ps)["sessions"][0]["usage"]["busy_ns"], 14'000);
  EXPECT_EQ((*ps)["sessions"][0]["usage"]["busy_now"], false);
  EXPECT_EQ((*ps)["jobs"][0]["usage"]["launches"], 14);
}

TEST_F(CommandTest, AJobKeepsTheUsageOfSessionsThatAreOver) {
  start();
  auto opener = protocol::connect_to(house_->socket());
  const auto job = Household::ask(*opener, {{"command", "job_open"}, {"name", "two"}});
  ASSERT_TRUE(job);
  for (int program = 0; program < 2; ++program) {
    TestClient client = opened((*job)["job"], (*job)["secret"]);  // the one before is over then
    ASSERT_TRUE(client.declare(1, client.at(0), Bytes{4 * kMiB}));
    ASSERT_TRUE(client.begin(1));
    ASSERT_TRUE(client.wait_binding(Binding::kBound));
    finish(client);
  }
  const Json ps = house_->wait_for("ps", [](const Json& answer) { return answer["jobs"].size() == 1; });
  EXPECT_EQ(ps["jobs"][0]["usage"]["launches"], 14);
}

TEST_F(CommandTest, ALongTraceComesInPages) {
  start();
  constexpr uint64_t kTasks = 100;  // three events each
  TestClient client = running(Bytes{8 * kMiB});
  for (uint64_t i = 1; i < kTasks; ++i) {
    finish(client);
    client = running(Bytes{8 * kMiB});
  }
  finish(client);
  std::set<uint64_t> seen;
  uint64_t next = 0, pages = 0;
  for (uint64_t end = 1; next < end; ++pages) {
    const auto page = house_->ask({{"command", "trace"}, {"since", next}});
    ASSERT_TRUE(page) << page.error().text;
    for (const Json& event : (*page)["events"]) seen.insert(event["number"].get<uint64_t>());
    EXPECT_LE((*page)["events"].size(), 64u);
    ASSERT_GT((*page)["next"].get<uint64_t>(), next);
    next = (*page)["next"];
    end = (*page)["end"];
  }
  EXPECT_GE(seen.size(), 3 * kTasks);
  EXPECT_EQ(seen.size(), next);  // none twice, none left out
  EXPECT_GE(pages, 2u);
}

TEST_F(CommandTest, ALongAnswerTravelsInMemory) {
  start("[[device]]\npreset = \"P100\"\ncount = 60\nmemory = \"4M\"\nslowdown = 0\n", "warm_workers = 0\n");
  const auto devices = house_->ask({{"command", "devices"}});
  ASSERT_TRUE(devices);
  EXPECT_GT(devices->dump().size(), protocol::kMaxJsonBytes);
  EXPECT_EQ((*devices)["devices"].size(), 60u);
}

// 500 sessions in one answer kept everybody waiting for 0.7 s.
TEST_F(CommandTest, SessionsComeInPages) {
  start(kTwoDevices);
  std::vector<TestClient> clients;
  for (int i = 0; i < 120; ++i) clients.push_back(opened());
  std::set<uint64_t> seen, jobs;
  auto page = house_->ask({{"command", "ps"}});
  ASSERT_TRUE(page);
  for (;;) {
    EXPECT_LE((*page)["sessions"].size(), 32u);
    for (const Json& session : (*page)["sessions"]) EXPECT_TRUE(seen.insert(session["session"].get<uint64_t>()).second);
    for (const Json& job : (*page)["jobs"]) EXPECT_TRUE(jobs.insert(job["job"].get<uint64_t>()).second);
    if (!page->contains("next")) break;
    page = house_->ask({{"command", "ps"}, {"from", (*page)["next"]}});
    ASSERT_TRUE(page);
  }
  EXPECT_EQ(seen.size(), 120u);
  EXPECT_EQ(jobs.size(), 120u);
  EXPECT_FALSE(house_->ask({{"command", "ps"}, {"from", "one"}}));
}

// A device has taken the task, and none of its workers start: its program is told why it waits.
TEST_F(CommandTest, WhoWaitsForAWorkerThatDoesNotStartIsTold) {
  start(kOneDevice, "warm_workers = 0\n");
  house_->fail_workers(true);
  TestClient client = begun(Bytes{2 * kMiB});
  const auto told = [](const Json& answer) {
    return answer["sessions"][0]["tasks"][0]["reason"].get<std::string>().find("workers do not start") !=
           std::string::npos;
  };
  const Json ps = house_->wait_for("ps", told);
  EXPECT_TRUE(told(ps));
  EXPECT_EQ(ps["sessions"][0]["tasks"][0]["wait"]["cause"], "a worker");
  house_->fail_workers(false);
  EXPECT_TRUE(client.wait_binding(protocol::Binding::kBound));
}

TEST_F(CommandTest, ThePolicyChangesOnlyWhileNothingRuns) {
  start(kOneDevice);
  {
    TestClient client = opened();
    EXPECT_THAT(house_->ask({{"command", "set_policy"}, {"policy", "sa"}}).error().text,
                ::testing::HasSubstr("sessions"));
  }
  auto stopped = Household::start(std::string(kDaemonTable) + kOneDevice);
  ASSERT_TRUE(stopped);
  ASSERT_TRUE((*stopped)->ask({{"command", "set_policy"}, {"policy", "cg:3"}}));
  EXPECT_EQ((*(*stopped)->ask({{"command", "policies"}}))["current"], "cg:3");
  EXPECT_EQ((*stopped)->client()->welcome().grants_at_malloc, 1u);
}

TEST_F(CommandTest, ShutdownEndsEverything) {
  start();
  const Fd vault = *open_pidfd(house_->vault());
  ASSERT_TRUE(house_->ask({{"command", "shutdown"}}));
  house_->wait_for_end_or_answer(vault, house_->heddled());
  EXPECT_TRUE(has_ended(vault));
  EXPECT_TRUE(house_->processes("heddle").empty());
}

}  // namespace
}  // namespace heddle::daemon::testing
