// One program's fault ends every worker of a device whose programs share their faults: real programs on a software
// device with `shared_faults`. Those that wait between two steps print what they print undisturbed; who is guilty has
// its error.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "steps.h"

namespace heddle::e2e {
namespace {

constexpr int kBystanders = 4;
// Behind which the fault comes; of the others some go on before it is over.
constexpr int kDisturbed = 2;

struct SharedFaults : testing::Test {
  explicit SharedFaults(const std::string& more = "")
      : node("[daemon]\nwarm_workers = 1\n[durability]\nlevel = 'off'\n" + more +
             "[[device]]\npreset = 'P100'\nmemory = '512M'\nslowdown = 0\ncopy_slowdown = 0\nshared_faults = true\n") {}
  void SetUp() override {
    ASSERT_TRUE(node.ready()) << node.why();
    for (const char* name : {"outlives", "illegal_access"})
      if (!std::filesystem::exists(program(name))) GTEST_SKIP() << name << " was not built on this machine";
    Steps alone(node);
    wanted = alone.undisturbed("outlives");
    ASSERT_NE(wanted.find("PASS"), std::string::npos) << wanted;
    for (int i = 0; i < kBystanders; ++i) {
      steps.push_back(std::make_unique<Steps>(node));
      bystanders.push_back(steps.back()->spawn("outlives"));
    }
  }

  std::vector<Json> tasks() {
    std::vector<Json> found;
    for (const Json& session : node.ask({{"command", "ps"}}).value("sessions", Json::array())) {
      for (const Json& task : session["tasks"]) found.push_back(task);
    }
    return found;
  }
  std::set<pid_t> workers() {
    std::set<pid_t> found;
    for (const Json& task : tasks()) found.insert(task.value("worker_pid", 0));
    return found;
  }
  // All bystanders stand before the step, and `others` tasks wait for something beside them; all is done and saved.
  bool all_reach(int step, size_t others) {
    return Node::eventually([&] {
      const std::string line = "step " + std::to_string(step) + "\n";
      const auto reached = [&](const Process& each) { return each.out().find(line) != std::string::npos; };
      if (!std::all_of(bystanders.begin(), bystanders.end(), reached)) return false;
      const auto now = tasks();  // of a program that has come so far
      const auto drained = [](const Json& task) { return task["drained"] == true; };
      return now.size() == kBystanders + others && std::all_of(now.begin(), now.end(), drained);
    });
  }
  // Everybody stands before the disturbance.
  void reach_disturbance(const std::vector<Process*>& guilty) {
    for (Process* each : guilty)
      ASSERT_TRUE(Node::eventually([&] { return each->out().find("ready\n") != std::string::npos; })) << each->err();
    for (int step = 1; step < kDisturbed; ++step) {
      ASSERT_TRUE(all_reach(step, guilty.size())) << node.ask({{"command", "ps"}}) << node.log();
      for (auto& each : steps) each->go(step);
    }
    ASSERT_TRUE(all_reach(kDisturbed, guilty.size())) << node.ask({{"command", "ps"}}) << node.log();
  }
  void expect_undisturbed() {
    for (auto& each : steps) each->go_on();
    for (Process& each : bystanders) {
      const Finished finished = each.wait();
      EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
      EXPECT_EQ(finished.out, wanted) << finished.err;
    }
    EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
    EXPECT_EQ(node.ask({{"command", "devices"}})["devices"][0]["state"], "ok");
    EXPECT_TRUE(node.stop_cleanly());
  }
  Process guilty(const Arguments& more = {}) {
    Arguments command{program("illegal_access"), node.directory()};
    command.insert(command.end(), more.begin(), more.end());
    return node.spawn_run(command);
  }
  // Its session, once its kernel is under way.
  Json guilty_at_work() {
    Json found;
    (void)Node::eventually([&] {
      const Json ps = node.ask({{"command", "ps"}});
      for (const Json& session : ps["sessions"]) {
        const bool is_guilty = session["program"] == "illegal_access" && !session["tasks"].empty();
        if (is_guilty && session["tasks"][0]["drained"] == false) found = session;
      }
      return !found.empty();
    });
    return found;
  }
  void go() { std::ofstream(node.directory() + "/go").flush(); }

  void expect_one_is_guilty() {
    Process culprit = guilty();
    ASSERT_NO_FATAL_FAILURE(reach_disturbance({&culprit}));
    const std::set<pid_t> before = workers();
    go();
    const Finished finished = culprit.wait();
    EXPECT_EQ(finished.status, 1) << finished.out << finished.err;
    EXPECT_NE(finished.out.find("700 cudaErrorIllegalAddress\n"), std::string::npos) << finished.out;
    EXPECT_NE(finished.err.find("store"), std::string::npos) << "its error names its kernel: " << finished.err;
    EXPECT_TRUE(Node::eventually([&] { return workers().size() == kBystanders; }));
    for (const pid_t worker : workers()) EXPECT_FALSE(before.contains(worker));
    expect_undisturbed();
  }

  Node node;
  std::string wanted;
  std::vector<std::unique_ptr<Steps>> steps;
  std::vector<Process> bystanders;
};

TEST_F(SharedFaults, BystandersAreRightAndTheGuiltyOneHasItsError) {
  expect_one_is_guilty();
}

// The device is lent to one after the other.
struct SharedFaultsAndLeases : SharedFaults {
  SharedFaultsAndLeases() : SharedFaults("[dispatch]\npolicy = 'tfs'\n") {}
};

TEST_F(SharedFaultsAndLeases, BystandersAreRightAndTheGuiltyOneHasItsError) {
  expect_one_is_guilty();
}

TEST_F(SharedFaults, TwoAreGuiltyAtOnce) {
  Process first = guilty(), second = guilty();
  ASSERT_NO_FATAL_FAILURE(reach_disturbance({&first, &second}));
  go();
  for (Process* each : {&first, &second}) {
    const Finished finished = each->wait();
    EXPECT_EQ(finished.status, 1) << finished.out << finished.err;
    EXPECT_NE(finished.out.find("700 cudaErrorIllegalAddress\n"), std::string::npos) << finished.out << finished.err;
  }
  expect_undisturbed();
}

TEST_F(SharedFaults, AWorkerThatIsKilledInMidKernelHarmsNoBystander) {
  Process culprit = guilty({"spin"});
  ASSERT_NO_FATAL_FAILURE(reach_disturbance({&culprit}));
  go();
  const Json session = guilty_at_work();
  ASSERT_FALSE(session.empty()) << node.ask({{"command", "ps"}});
  const pid_t worker = session["tasks"][0]["worker_pid"];
  ASSERT_GT(worker, 1);
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  const std::set<pid_t> before = workers();
  ASSERT_TRUE(Node::eventually([&] {
    const auto now = workers();
    return now.size() >= kBystanders &&
           std::none_of(now.begin(), now.end(), [&](pid_t pid) { return before.contains(pid); });
  })) << node.ask({{"command", "ps"}});
  culprit.signal(SIGTERM);
  (void)culprit.wait();
  expect_undisturbed();
}

TEST_F(SharedFaults, AProgramThatIsKilledInMidKernelHarmsNobody) {
  Process culprit = guilty({"spin"});
  ASSERT_NO_FATAL_FAILURE(reach_disturbance({&culprit}));
  const std::set<pid_t> before = workers();
  go();
  const Json session = guilty_at_work();
  ASSERT_FALSE(session.empty()) << node.ask({{"command", "ps"}});
  ASSERT_EQ(::kill(session["pid"].get<pid_t>(), SIGKILL), 0);
  EXPECT_EQ(culprit.wait().status, 128 + SIGKILL);
  ASSERT_TRUE(Node::eventually([&] { return tasks().size() == kBystanders; }));
  const std::set<pid_t> now = workers();
  EXPECT_TRUE(std::includes(before.begin(), before.end(), now.begin(), now.end())) << "no worker was ended";
  expect_undisturbed();
}

TEST_F(SharedFaults, HeddledDiesMeanwhile) {
  Process culprit = guilty();
  ASSERT_NO_FATAL_FAILURE(reach_disturbance({&culprit}));
  const pid_t heddled = node.daemon_pid();
  ASSERT_GT(heddled, 1);
  go();
  ASSERT_TRUE(Node::eventually([&] { return node.log().find("faulted on device") != std::string::npos; }));
  ASSERT_EQ(::kill(heddled, SIGKILL), 0);
  EXPECT_EQ(culprit.wait().status, 1);
  expect_undisturbed();
}

}  // namespace
}  // namespace heddle::e2e
