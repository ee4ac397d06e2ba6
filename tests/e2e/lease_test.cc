// Devices that are lent to one program after the other: shares, and what becomes of a lease when somebody dies.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "core/sanitizer.h"
#include "node.h"

namespace heddle::e2e {
namespace {

// One device on which a launch of vecadd takes about a millisecond.
std::string lent_device(const std::string& dispatch) {
  return "[daemon]\nwarm_workers = 2\n[durability]\nlevel = 'off'\n[dispatch]\nwindow = '20ms'\n" + dispatch +
         "\n[[device]]\npreset = 'P100'\ncount = 1\nmemory = '256M'\nslowdown = 2000\ncopy_slowdown = 10\n";
}

Arguments vecadd(int iterations) {
  return {workload("vecadd"), "--size", "100000", "--streams", "1", "--iterations", std::to_string(iterations)};
}
// Each launch takes thirty times as long then.
constexpr int kShort = kSanitized ? 80 : 200, kEndless = 10'000;  // launches

struct Leases : testing::Test {
  explicit Leases(const std::string& dispatch = "policy = 'fs'") : node(lent_device(dispatch)) {}
  void SetUp() override {
    HEDDLE_NEEDS_WORKLOADS();
    ASSERT_TRUE(node.ready()) << node.why();
  }
  Process spawn(int iterations, const std::string& weight = "1") {
    Arguments arguments{"run", "--weight", weight, "--"};
    const Arguments program = vecadd(iterations);
    arguments.insert(arguments.end(), program.begin(), program.end());
    return node.spawn(arguments);
  }
  Json sessions() { return node.ask({{"command", "ps"}}).value("sessions", Json::array()); }
  // A session whose lease is in that state while another's is in `beside`, {} where there is none just now.
  Json find(const std::string& state, const std::string& beside) {
    Json found;
    bool other = false;
    for (const Json& session : sessions()) {
      for (const Json& task : session.value("tasks", Json::array())) {
        const std::string is = task.value("lease", Json::object()).value("state", "");
        if (is == state) found = session;
        other |= is == beside;
      }
    }
    return other ? found : Json{};
  }
  // Waits for such a session.
  Json await(const std::string& state, const std::string& beside) {
    Json found;
    EXPECT_TRUE(Node::eventually([&] { return !(found = find(state, beside)).empty(); })) << sessions();
    return found;
  }
  void expect_pass(Process& program) {
    const Finished finished = program.wait(std::chrono::seconds(120));
    EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
    EXPECT_NE(finished.out.find("PASS"), std::string::npos) << finished.out;
  }
  void expect_empty() {
    EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
  }
  void restart_heddled() {
    const pid_t heddled = node.daemon_pid();
    ::kill(heddled, SIGKILL);
    ASSERT_TRUE(Node::eventually([&] {
      const pid_t now = node.daemon_pid();
      return now > 0 && now != heddled;
    }));
  }
  // Of two programs one has the status; the other is well.
  Finished expect_one_fails(Process& first, Process& second) {
    Finished finished[] = {first.wait(std::chrono::seconds(120)), second.wait(std::chrono::seconds(120))};
    if (finished[0].status == 0) std::swap(finished[0], finished[1]);
    EXPECT_NE(finished[0].status, 0) << finished[0].out;
    EXPECT_EQ(finished[1].status, 0) << finished[1].out << finished[1].err << node.log();
    EXPECT_NE(finished[1].out.find("PASS"), std::string::npos);
    return finished[0];
  }
  void expect_worker_died(Process& first, Process& second) {
    const Finished failed = expect_one_fails(first, second);
    EXPECT_NE(failed.err.find("719"), std::string::npos) << failed.status << failed.out << failed.err << node.log();
  }
  Node node;
};

TEST_F(Leases, ThePolicyIsShown) {
  EXPECT_EQ(node.ask({{"command", "devices"}})["devices"][0]["dispatch"], "fs");
  const Finished policies = node.heddle({"policies"});
  EXPECT_NE(policies.out.find("* in use: fs\n"), std::string::npos) << policies.out;
  const Json listed = Json::parse(node.heddle({"policies", "--json"}).out);
  EXPECT_EQ(listed["dispatch"]["current"], "fs");
  EXPECT_EQ(listed["dispatch"]["policies"][0]["name"], "open");
}

TEST(Policies, AreListedWhereNoDaemonRunsAndNoneIsStarted) {
  Node node(Node::default_config(), "cg:3");
  ASSERT_TRUE(node.ready()) << node.why();
  EXPECT_EQ(Json::parse(node.heddle({"policies", "--json"}).out)["current"], "cg:3");
  EXPECT_NE(node.heddle({"policies"}).out.find("cg:<ratio>  *"), std::string::npos);
  EXPECT_EQ(node.heddle({"daemon", "stop"}).status, 0);
  const Finished text = node.heddle({"policies"}), json = node.heddle({"policies", "--json"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("mgb-warps"), std::string::npos);
  EXPECT_NE(text.out.find("no heddled answers"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("* in use"), std::string::npos) << text.out;
  EXPECT_TRUE(Json::parse(json.out)["current"].is_null()) << json.out;
  EXPECT_EQ(node.daemon_pid(), -1);
}

TEST_F(Leases, AProgramAloneRunsAsEver) {
  Process program = spawn(kShort);
  expect_pass(program);
  expect_empty();
}

TEST_F(Leases, TwoProgramsTakeTurnsAndBothAreRight) {
  Process first = spawn(kShort), second = spawn(kShort);
  await("held", "waits");
  const Finished ps = node.heddle({"ps"});
  EXPECT_NE(ps.out.find("LEASE"), std::string::npos) << ps.out;
  expect_pass(first);
  expect_pass(second);
  expect_empty();
}

// What each has used while both had work, by its worker's measure.
TEST_F(Leases, TurnsAreAsLongAsWeightsSay) {
  if (kSanitized) GTEST_SKIP() << "with a sanitizer one kernel is longer than a turn, and fs does not count the drain";
  Process light = spawn(kEndless, "1"), heavy = spawn(kEndless, "3");
  await("held", "waits");
  const auto used = [&] {
    std::map<double, double> by_weight;
    for (const Json& job : node.ask({{"command", "ps"}}).value("jobs", Json::array()))
      by_weight[job.value("weight", 0.0)] = job["usage"].value("busy_ns", 0.0) / 1e9;
    return by_weight;
  };
  const auto before = used();
  ASSERT_EQ(before.size(), 2u);
  std::map<double, double> now;
  ASSERT_TRUE(Node::eventually([&] {
    now = used();
    return now.at(1) + now.at(3) - before.at(1) - before.at(3) > 1.6;
  }));
  const double ratio = (now.at(3) - before.at(3)) / (now.at(1) - before.at(1));
  // fs does not count the drain behind a turn, which on a busy machine is longer than the lighter one's turn.
  EXPECT_GT(ratio, 1.2) << node.ask({{"command", "ps"}});
  EXPECT_LT(ratio, 5.0);
  for (Process* program : {&light, &heavy}) program->signal(SIGTERM);
  expect_empty();
}

TEST_F(Leases, AWorkerThatDiesWithTheLeaseTakesOnlyItsProgramAlong) {
  Process first = spawn(3 * kShort), second = spawn(3 * kShort);
  const Json holder = await("held", "waits");
  ASSERT_FALSE(holder.empty());
  const pid_t worker = node.stop_at_work(holder["session"]);
  ASSERT_GT(worker, 1) << sessions();
  ::kill(worker, SIGKILL);
  expect_worker_died(first, second);
  expect_empty();
}

TEST_F(Leases, AProgramThatDiesWhileItWaitsLeavesTheTurnsToTheOthers) {
  Process first = spawn(2 * kShort), second = spawn(2 * kShort);
  const Json waiting = await("waits", "held");
  ASSERT_FALSE(waiting.empty());
  ::kill(waiting["pid"].get<pid_t>(), SIGKILL);
  EXPECT_EQ(expect_one_fails(first, second).status, 128 + SIGKILL);
  expect_empty();
}

TEST_F(Leases, AProgramThatDiesWithTheLeaseDoesToo) {
  Process first = spawn(2 * kShort), second = spawn(2 * kShort);
  const Json holder = await("held", "waits");
  ASSERT_FALSE(holder.empty());
  ::kill(holder["pid"].get<pid_t>(), SIGKILL);
  EXPECT_EQ(expect_one_fails(first, second).status, 128 + SIGKILL);
  expect_empty();
}

TEST_F(Leases, TurnsGoOnAfterARestartOfHeddled) {
  Process first = spawn(3 * kShort), second = spawn(3 * kShort);
  for (int restart = 0; restart < 3; ++restart) {
    await("held", "waits");
    ASSERT_NO_FATAL_FAILURE(restart_heddled());
  }
  expect_pass(first);
  expect_pass(second);
  expect_empty();
}

// Nobody else may wait for it for ever. It would be continued after some seconds (stopped_workers.h).
struct ImpatientLeases : Leases {
  ImpatientLeases() : Leases("policy = 'fs'\nreturn_limit = '1500ms'") {}
};
TEST_F(ImpatientLeases, AWorkerThatDoesNotGiveTheLeaseBackFailsItsProgram) {
  if (kSanitized) GTEST_SKIP() << "what is in flight may take as long as the limit";
  Process first = spawn(3 * kShort), second = spawn(3 * kShort);
  const Json holder = await("held", "waits");
  ASSERT_FALSE(holder.empty());
  ::kill(holder["tasks"][0]["worker_pid"].get<pid_t>(), SIGSTOP);
  const Finished failed = expect_one_fails(first, second);
  EXPECT_NE(failed.err.find("went on for"), std::string::npos) << failed.err;
  EXPECT_NE(failed.err.find("return_limit"), std::string::npos) << failed.err;
  expect_empty();
}

// return_limit is over when the processes resume, and heddled looks at its leases before the workers can return them.
TEST_F(ImpatientLeases, NobodyFailsBecauseEverybodyStoodStill) {
  if (kSanitized) GTEST_SKIP() << "what is in flight may take as long as the limit";
  Process first = spawn(2 * kShort), second = spawn(2 * kShort);
  ASSERT_FALSE(await("held", "waits").empty());
  node.stand_still(std::chrono::seconds(3));
  expect_pass(first);
  expect_pass(second);
  expect_empty();
}

// Two programs, one of whose worker is stopped: it holds the device beyond its turn until the test goes on.
struct DrainingLeases : Leases {
  void SetUp() override {
    Leases::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    first.emplace(spawn(kShort));
    second.emplace(spawn(kShort));
    const Json holder = await("held", "waits");
    ASSERT_FALSE(holder.empty());
    program = holder["pid"].get<pid_t>();
    worker = node.stop_at_work(holder["session"]);
    ASSERT_GT(worker, 1) << sessions();
    ASSERT_TRUE(Node::eventually([this] { return drains(); })) << sessions();
  }
  bool drains() {
    const Json session = find("draining", "waits");
    return !session.empty() && session["pid"] == program;
  }
  void restart_while_it_drains() {
    ASSERT_NO_FATAL_FAILURE(restart_heddled());
    ASSERT_TRUE(Node::eventually([this] { return drains(); })) << sessions();
  }
  std::optional<Process> first, second;
  pid_t program = 0, worker = 0;
};

TEST_F(DrainingLeases, WhenItsWorkerDiesTheOtherHasTheDevice) {
  ::kill(worker, SIGKILL);
  expect_worker_died(*first, *second);
  expect_empty();
}

TEST_F(DrainingLeases, WhenItsProgramDiesTheOtherHasTheDevice) {
  ::kill(program, SIGKILL);
  EXPECT_EQ(expect_one_fails(*first, *second).status, 128 + SIGKILL);
  expect_empty();
}

TEST_F(DrainingLeases, AfterARestartOfHeddledNothingIsLost) {
  ASSERT_NO_FATAL_FAILURE(restart_while_it_drains());
  ::kill(worker, SIGCONT);
  expect_pass(*first);
  expect_pass(*second);
  expect_empty();
}

TEST_F(DrainingLeases, AfterARestartOfHeddledItsWorkerMayDie) {
  ASSERT_NO_FATAL_FAILURE(restart_while_it_drains());
  ::kill(worker, SIGKILL);
  expect_worker_died(*first, *second);
  expect_empty();
}

TEST_F(DrainingLeases, AfterARestartOfHeddledItsProgramMayDie) {
  ASSERT_NO_FATAL_FAILURE(restart_while_it_drains());
  ::kill(program, SIGKILL);
  EXPECT_EQ(expect_one_fails(*first, *second).status, 128 + SIGKILL);
  expect_empty();
}

// The configuration has another policy when heddled comes back.
struct LeasesThatBegin : Leases {
  LeasesThatBegin() : Leases("policy = 'open'") {}
};
TEST_F(LeasesThatBegin, ProgramsThatRanSideBySideTakeTurnsAfterARestart) {
  if (kSanitized) GTEST_SKIP() << "what two programs have queued by then takes minutes";
  Process programs[] = {spawn(3 * kShort), spawn(3 * kShort)};
  ASSERT_TRUE(Node::eventually([&] {
    const Json all = sessions();
    return all.size() == 2 && std::all_of(all.begin(), all.end(), [](const Json& session) {
             return session["usage"].value("launches", 0) > 0;
           });
  })) << sessions();
  std::ofstream(node.directory() + "/heddle.toml") << lent_device("policy = 'fs'");
  ASSERT_NO_FATAL_FAILURE(restart_heddled());
  EXPECT_FALSE(await("held", "waits").empty());
  for (Process& each : programs) expect_pass(each);
  expect_empty();
}

struct LeasesByPolicy : Leases, testing::WithParamInterface<const char*> {
  LeasesByPolicy() : Leases(std::string("policy = '") + GetParam() + "'") {}
};
TEST_P(LeasesByPolicy, ThreeProgramsAreRight) {
  Process first = spawn(kShort), second = spawn(kShort), third = spawn(kShort);
  expect_pass(first);
  expect_pass(second);
  expect_pass(third);
  expect_empty();
}
INSTANTIATE_TEST_SUITE_P(Policies, LeasesByPolicy, testing::Values("open", "tfs", "las", "las:2", "token"));

// What heddled was told, in two lives, told to other schedulers and dispatch policies: they decide the same.
TEST(InputLog, ReplaysToTheSameDecisions) {
  HEDDLE_NEEDS_WORKLOADS();
  const std::string path = testing::TempDir() + "inputs-" + std::to_string(::getpid());
  std::string config = lent_device("policy = 'tfs'");
  config.insert(config.find('\n') + 1, "input_log = '" + path + "'\n");
  Node node(config);
  ASSERT_TRUE(node.ready()) << node.why();
  Process endless = node.spawn_run(vecadd(kEndless));
  const auto served = [&] { return node.ask({{"command", "ps"}}).value("sessions", Json::array()).size() > 0; };
  ASSERT_TRUE(Node::eventually(served));
  EXPECT_EQ(node.run(vecadd(kShort)).status, 0);
  const pid_t before = node.daemon_pid();
  ::kill(before, SIGKILL);
  ASSERT_TRUE(Node::eventually([&] { return node.daemon_pid() > 0 && node.daemon_pid() != before && served(); }));
  EXPECT_EQ(node.run(vecadd(kShort)).status, 0);
  endless.signal(SIGTERM);
  endless.wait();
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
  const Finished replayed = node.heddle({"replay", "--json", path});
  EXPECT_EQ(replayed.status, 0) << replayed.out << replayed.err;
  const Json outcome = Json::parse(replayed.out);
  EXPECT_EQ(outcome["schedulers"], 2);
  EXPECT_EQ(outcome["dispatches"], 2);
  EXPECT_EQ(outcome["different"], 0);
  EXPECT_GT(outcome["answers"], 10);
  ::unlink(path.c_str());
}

// Of what one program does: the log ends at its limit, heddled says so once and goes on, and what is there replays.
TEST(InputLog, EndsAtItsLimit) {
  HEDDLE_NEEDS_WORKLOADS();
  const std::string path = testing::TempDir() + "inputs-full-" + std::to_string(::getpid());
  std::string config = lent_device("policy = 'fs'");
  config.insert(config.find('\n') + 1, "input_log = '" + path + "'\ninput_log_limit = 4096\n");
  Node node(config);
  ASSERT_TRUE(node.ready()) << node.why();
  const auto ends = [&] {
    const std::string log = node.log(), said = "of the 4 KiB that it may, and ends here";
    const size_t first = log.find(said);
    return first == std::string::npos ? 0 : log.find(said, first + 1) == std::string::npos ? 1 : 2;
  };
  EXPECT_TRUE(Node::eventually(
      [&] {
        EXPECT_EQ(node.run(vecadd(kShort)).status, 0);
        return ends() > 0;
      },
      std::chrono::seconds(120)));
  EXPECT_EQ(node.run(vecadd(kShort)).status, 0);
  EXPECT_EQ(ends(), 1) << node.log();
  const Finished replayed = node.heddle({"replay", path});
  EXPECT_EQ(replayed.status, 0) << replayed.out << replayed.err;
  EXPECT_NE(replayed.out.find("it ended at its limit (input_log_limit) of 4 KiB"), std::string::npos) << replayed.out;
  EXPECT_LE(std::filesystem::file_size(path), 4096u);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace heddle::e2e
