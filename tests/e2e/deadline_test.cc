// Requests of a user-facing program beside batch programs that never pause, under deadline policies.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "core/sanitizer.h"
#include "node.h"

namespace heddle::e2e {
namespace {

std::string under(const std::string& dispatch) {
  return "[dispatch]\npolicy = '" + dispatch + "'\n" + Node::default_config();
}

struct Deadlines : testing::Test {
  void SetUp() override { HEDDLE_NEEDS_WORKLOADS(); }
  // A program that computes in so many bursts, with pauses of so many milliseconds.
  static Process episodes(Node& node, const Arguments& options, int bursts, int pause) {
    Arguments command{"run"};
    command.insert(command.end(), options.begin(), options.end());
    const Arguments program{
        "--",    workload("episodes"),  "--size",     "4096", "--steps",      "50",
        "--gap", std::to_string(pause), "--launches", "20",   "--iterations", std::to_string(bursts)};
    command.insert(command.end(), program.begin(), program.end());
    return node.spawn(command);
  }
  static Json job_of(Node& node, const std::string& name) {
    for (const Json& job : node.ask({{"command", "ps"}}).value("jobs", Json::array())) {
      if (job["name"] == name) return job;
    }
    return {};
  }
  // How many tasks have a device.
  static int placed(Node& node) {
    int count = 0;
    for (const Json& session : node.ask({{"command", "ps"}}).value("sessions", Json::array())) {
      for (const Json& task : session.value("tasks", Json::array())) count += task.contains("device");
    }
    return count;
  }
  static void expect_pass(Node& node, Process& program) {
    const Finished finished = program.wait();
    EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
    EXPECT_NE(finished.out.find("PASS"), std::string::npos) << finished.out;
  }
};

constexpr int kWithoutEnd = 1 << 20;
constexpr int kLong = kSanitized ? 500 : 3000;  // bursts; each takes thirty times as long with a sanitizer

struct Served : Deadlines, testing::WithParamInterface<const char*> {};

TEST_P(Served, RequestsAreServedWhileBatchComputes) {
  Node node(under(GetParam()));
  ASSERT_TRUE(node.ready()) << node.why();
  Process endless[] = {episodes(node, {}, kWithoutEnd, 0), episodes(node, {"--class", "batch"}, kWithoutEnd, 0)};
  ASSERT_TRUE(Node::eventually([&] { return placed(node) == 2; })) << node.ask({{"command", "ps"}});
  Process server = episodes(node, {"--class", "user-facing", "--slo", "10s", "--name", "server"}, 40, 20);
  Json shown;
  EXPECT_TRUE(Node::eventually([&] {
    const Json job = job_of(node, "server");
    if (job.empty() || job["requests"]["met"] < 3) return false;
    shown = job;
    return true;
  })) << node.ask({{"command", "ps"}});
  const Finished ps = node.heddle({"ps"});
  EXPECT_NE(ps.out.find("met, p99"), std::string::npos) << ps.out;
  EXPECT_EQ(shown["class"], "user-facing");
  EXPECT_EQ(shown["slo_ns"], 10'000'000'000);
  EXPECT_GT(shown["requests"]["p50_ns"], 0);
  expect_pass(node, server);
  for (Process& batch : endless) {
    EXPECT_TRUE(batch.running());
    batch.signal(SIGTERM);
  }
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

INSTANTIATE_TEST_SUITE_P(Under, Served, testing::Values("priority:soft", "priority:share"));

// Of 56 SMs it has one, which holds the twelve blocks of its cooperative launch.
TEST_F(Deadlines, ABatchProgramIsKeptToItsPartOfTheSms) {
  Node node("[dispatch]\npolicy = 'priority:share'\nbatch_sms = 1\n[[device]]\npreset = 'P100'\nmemory = '256M'\n");
  ASSERT_TRUE(node.ready()) << node.why();
  Process server = episodes(node, {"--class", "user-facing", "--slo", "10s", "--name", "server"}, 5, 5);
  const Finished together = node.run({HEDDLE_E2E_PROGRAMS "/grid_sync"});
  EXPECT_EQ(together.out, "PASS\n") << together.err;
  Process batch = episodes(node, {}, 5, 0);
  expect_pass(node, batch);
  expect_pass(node, server);
}

// With more programs than devices, of which each comes to its end with right results. Under elastic a batch program on
// the device that is kept for requests waits for some ten seconds after the last one.
TEST_F(Deadlines, AllEndWithRightResults) {
  for (const char* policy : {"fifo", "priority:off", "priority:soft", "priority:hard", "priority:share", "elastic:off",
                             "elastic:soft", "elastic:hard"}) {
    SCOPED_TRACE(policy);
    Node node(under(policy));
    ASSERT_TRUE(node.ready()) << node.why();
    std::vector<Process> programs;
    for (int i = 0; i < 3; ++i) programs.push_back(episodes(node, {}, 20, 0));
    for (int i = 0; i < 2; ++i) programs.push_back(episodes(node, {"--class", "user-facing"}, 10, 5));
    for (Process& program : programs) expect_pass(node, program);
    EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
  }
}

// The batch program's worker is stopped between two kernels, and so keeps the device until it is terminated; where it
// is stopped in one, that is not done, and it goes on.
TEST_F(Deadlines, BatchIsTerminatedForRequestsAndEndsWithRightResults) {
  Node node("[dispatch]\npolicy = 'priority:hard'\n[[device]]\npreset = 'P100'\nmemory = '256M'\nslowdown = 0\n");
  ASSERT_TRUE(node.ready()) << node.why();
  Process server = episodes(node, {"--class", "user-facing", "--slo", "50ms", "--name", "server"}, kWithoutEnd, 20);
  ASSERT_TRUE(Node::eventually([&] { return placed(node) == 1; }));
  Process batch = episodes(node, {"--name", "batch"}, kLong, 0);
  const auto revoked = [&](const char* what) {
    const Json job = job_of(node, "batch");
    return job.is_object() && job.contains("revocations") ? job["revocations"][what].get<int>() : 0;
  };
  const auto worker = [&] {
    const Json ps = node.ask({{"command", "ps"}});
    for (const Json& session : ps.value("sessions", Json::array())) {
      for (const Json& job : ps["jobs"]) {
        if (job["name"] != "batch" || job["job"] != session["job"] || session["tasks"].empty()) continue;
        return session["tasks"][0].value("worker_pid", pid_t{-1});
      }
    }
    return pid_t{-1};
  };
  constexpr int kWanted = 3;
  for (int tries = 0; tries < 200 && batch.running() && revoked("terminated") < kWanted; ++tries) {
    const pid_t victim = worker();
    if (victim < 2) continue;
    const int before = revoked("terminated") + revoked("not_terminated");
    ::kill(victim, SIGSTOP);
    (void)Node::eventually([&] { return revoked("terminated") + revoked("not_terminated") > before; },
                           std::chrono::milliseconds(150));
    ::kill(victim, SIGCONT);
  }
  EXPECT_GE(revoked("terminated"), kWanted) << node.ask({{"command", "ps"}}) << node.log();
  EXPECT_NE(node.heddle({"ps"}).out.find("; terminated "), std::string::npos);
  EXPECT_NE(node.heddle({"devices"}).out.find(" measured)"), std::string::npos);
  const Json top = Json::parse(node.heddle({"top", "--json", "--count", "1"}).out, nullptr, false);
  ASSERT_TRUE(top.is_object());
  EXPECT_TRUE(top["devices"][0]["revocation"].is_object()) << top;
  EXPECT_TRUE(std::any_of(top["jobs"].begin(), top["jobs"].end(), [](const Json& job) {
    return job["revocations"].is_object() && job["revocations"]["lost_ns"].is_number();
  })) << top;
  server.signal(SIGTERM);
  expect_pass(node, batch);
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

// A device that was lent before is lent to nobody until its worker has said that it has drained.
TEST_F(Deadlines, RequestsAndBatchGoOnAfterARestartOfHeddled) {
  Node node(under("priority:soft"));
  ASSERT_TRUE(node.ready()) << node.why();
  Process batch[] = {episodes(node, {}, 200, 0), episodes(node, {}, 200, 0)};
  Process server = episodes(node, {"--class", "user-facing", "--slo", "10s", "--name", "server"}, 60, 20);
  ASSERT_TRUE(Node::eventually([&] {
    const Json job = job_of(node, "server");
    return !job.empty() && job["requests"]["count"] > 0;
  }));
  const pid_t heddled = node.daemon_pid();
  ::kill(heddled, SIGKILL);
  ASSERT_TRUE(Node::eventually([&] {
    const Json job = job_of(node, "server");
    return !job.empty() && job["class"] == "user-facing" && node.daemon_pid() != heddled;
  }));
  expect_pass(node, server);
  for (Process& each : batch) expect_pass(node, each);
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

TEST_F(Deadlines, ThePoliciesAreListed) {
  Node node(under("elastic:hard"));
  ASSERT_TRUE(node.ready()) << node.why();
  const Json dispatch = Json::parse(node.heddle({"policies", "--json"}).out)["dispatch"];
  EXPECT_EQ(dispatch["current"], "elastic:hard");
  std::string names;
  for (const Json& policy : dispatch["policies"]) names += policy["name"].get<std::string>() + " ";
  EXPECT_NE(
      names.find("fifo priority:off priority:soft priority:hard priority:share elastic:off elastic:soft elastic:hard "),
      std::string::npos)
      << names;
}

TEST_F(Deadlines, AnSloIsForUserFacingJobsAlone) {
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  const Finished batch = node.heddle({"run", "--slo", "100ms", "--", "true"});
  EXPECT_NE(batch.status, 0);
  EXPECT_NE(batch.err.find("--slo: slo 100 ms: a batch job has no requests"), std::string::npos) << batch.err;
  const Finished lenient = node.heddle({"run", "--class", "user-facing", "--slo", "2h", "--", "true"});
  EXPECT_NE(lenient.err.find("a request may take from 1 ms to"), std::string::npos) << lenient.err;
}

}  // namespace
}  // namespace heddle::e2e
