// Faults, done for real: processes are killed at random moments while jobs run, and afterwards the ledger is at zero,
// nothing is left behind, and everybody who was not hit has right results.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <random>
#include <thread>

#include "core/clock.h"
#include "node.h"

namespace heddle::e2e {
namespace {

enum class Victim { kProgram, kWorker, kDaemon, kVault };

// HEDDLE_FAULT_ROUNDS and HEDDLE_FAULT_SEED repeat or lengthen a run.
struct Storm {
  explicit Storm(const std::string& config = Node::default_config()) : node(config) {}
  Node node;
  std::mt19937 random{setting("HEDDLE_FAULT_SEED", 20260)};
  int hits[4] = {};

  // Programs that run for some tenths of a second; which, and how large, is drawn.
  Process start_program() {
    static const Arguments kPrograms[] = {{"vecadd"},
                                          {"bfs"},
                                          {"needle"},
                                          {"srad_v2"},
                                          {"nested_pointers"},
                                          {"transpose", "--iterations", "60"},
                                          {"nn", "--mode", "train"}};
    Arguments command = kPrograms[random() % std::size(kPrograms)];
    command[0] = workload(command[0]);
    return node.spawn_run(command);
  }

  // Kills one process of that kind, if there is one; true if it did.
  bool strike(Victim victim) {
    pid_t target = -1;
    if (victim == Victim::kWorker) {
      const auto workers = node.worker_pids();
      if (!workers.empty()) target = workers[random() % workers.size()];
    }
    if (victim == Victim::kDaemon) target = node.daemon_pid();
    if (victim == Victim::kVault) target = node.vault_pid();
    if (target <= 1 || ::kill(target, SIGKILL) != 0) return false;
    ++hits[static_cast<int>(victim)];
    return true;
  }

  void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(random() % 250)); }
};

// The programs of `heddle run` are its children; killing the program itself, not the command.
pid_t child_of(pid_t parent) {
  FILE* file =
      std::fopen(("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children").c_str(), "r");
  int child = -1;
  if (file && std::fscanf(file, "%d", &child) != 1) child = -1;
  if (file) std::fclose(file);
  return child;
}

void kill_at_random(Storm& storm) {
  ASSERT_TRUE(storm.node.ready()) << storm.node.why();
  const unsigned rounds = setting("HEDDLE_FAULT_ROUNDS", 12);
  int right = 0, failed = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<Process> jobs;
    for (int n = 0; n < 2; ++n) jobs.push_back(storm.start_program());
    storm.pause();
    const auto victim = static_cast<Victim>(round % 4);
    bool program_killed = false;
    if (victim == Victim::kProgram) {
      const pid_t program = child_of(jobs[0].pid());
      program_killed = program > 0 && ::kill(program, SIGKILL) == 0;
      storm.hits[0] += program_killed;
    } else {
      storm.strike(victim);
    }
    int failures = 0;
    for (Process& job : jobs) {
      const Finished finished = job.wait(std::chrono::seconds(90));
      ASSERT_NE(finished.status, -1) << "round " << round << ": a program hangs\n"
                                     << finished.out << finished.err << storm.node.log();
      ASSERT_NE(finished.status, 2) << "round " << round << ": a wrong result: " << finished.out << finished.err;
      const bool is_right = finished.status == 0 && finished.out.find("PASS") != std::string::npos;
      failures += !is_right;
      if (!is_right && victim == Victim::kWorker) {
        EXPECT_EQ(finished.status, 1) << "round " << round << ": no CUDA error: " << finished.out << finished.err;
      }
      (is_right ? right : failed) += 1;
    }
    // Killing heddled or the vault costs no job; killing a program or a worker costs at most that one.
    const int most = victim == Victim::kProgram || victim == Victim::kWorker ? 1 : 0;
    EXPECT_LE(failures, most) << "round " << round << ", victim " << static_cast<int>(victim) << storm.node.log();
    ASSERT_TRUE(Node::eventually([&] { return storm.node.empty(); }))
        << "round " << round << ": " << storm.node.ask({{"command", "ps"}}) << storm.node.ask({{"command", "devices"}});
  }
  std::printf("killed %d programs, %d workers, %d heddleds, %d vaults; %d programs right, %d failed\n", storm.hits[0],
              storm.hits[1], storm.hits[2], storm.hits[3], right, failed);
  EXPECT_TRUE(storm.node.stop_cleanly()) << "processes were left behind";
}

TEST(Faults, KillingARandomProcessHarmsNobodyElse) {
  HEDDLE_NEEDS_WORKLOADS();
  Storm storm;
  kill_at_random(storm);
}

// A device is lent to one program after the other meanwhile.
TEST(Faults, KillingARandomProcessLosesNoLease) {
  HEDDLE_NEEDS_WORKLOADS();
  Storm storm(
      "[daemon]\nwarm_workers = 1\n[dispatch]\npolicy = 'tfs'\n[[device]]\npreset = 'P100'\nmemory = '256M'\n"
      "slowdown = 0\ncopy_slowdown = 0\n");
  kill_at_random(storm);
}

// heddled is gone and back: what ran goes on to its end, and the ledger counts it again meanwhile.
TEST(Faults, ARestartedHeddledKnowsWhatRuns) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(
      "[daemon]\nwarm_workers = 1\n[[device]]\npreset = 'P100'\nmemory = '64M'\nslowdown = 25000\ncopy_slowdown = "
      "10\n");
  ASSERT_TRUE(node.ready()) << node.why();
  Process job = node.spawn_run({workload("vecadd"), "--size", "4000000", "--check", "sample"});
  Json before;
  ASSERT_TRUE(Node::eventually([&] {
    before = node.ask({{"command", "devices"}});
    return before.contains("devices") && before["devices"][0]["tasks"] == 1;
  }));
  const pid_t first = node.daemon_pid();
  ASSERT_GT(first, 1);
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  EXPECT_TRUE(Node::eventually([&] {
    const Json after = node.ask({{"command", "devices"}});
    return after.contains("devices") && (!job.running() || after["devices"][0]["used"] == before["devices"][0]["used"]);
  }));
  EXPECT_NE(node.daemon_pid(), first);
  const Finished finished = job.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
}

// Of what ran before nothing is known any more: its workers end, and the program is told.
TEST(Faults, WorkersOfALifeThatIsForgottenEnd) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(
      "[daemon]\nwarm_workers = 1\n[[device]]\npreset = 'P100'\nmemory = '64M'\nslowdown = 2000000\ncopy_slowdown = "
      "10\n");
  ASSERT_TRUE(node.ready()) << node.why();
  Process job = node.spawn_run({workload("vecadd"), "--size", "4000000", "--check", "sample"});
  ASSERT_TRUE(Node::eventually([&] {
    const Json devices = node.ask({{"command", "devices"}});
    return devices.contains("devices") && devices["devices"][0]["tasks"] == 1 && devices["devices"][0]["workers"] == 1;
  }));
  const std::vector<pid_t> old = node.worker_pids();
  const pid_t vault = node.vault_pid(), heddled = node.daemon_pid();
  ASSERT_GT(vault, 1);
  ASSERT_GT(heddled, 1);
  // Both at once: stopped, neither can start the other.
  ASSERT_EQ(::kill(vault, SIGSTOP), 0);
  ASSERT_EQ(::kill(heddled, SIGSTOP), 0);
  ASSERT_EQ(::kill(vault, SIGKILL), 0);
  ASSERT_EQ(::kill(heddled, SIGKILL), 0);
  ASSERT_TRUE(Node::eventually([&] { return node.vault_pid() == -1; }));
  const Finished started = node.heddle({"daemon", "start"});
  ASSERT_EQ(started.status, 0) << started.err;
  EXPECT_TRUE(Node::eventually([&] {
    const auto workers = node.worker_pids();
    return std::none_of(old.begin(), old.end(),
                        [&](pid_t pid) { return std::find(workers.begin(), workers.end(), pid) != workers.end(); });
  })) << node.log();
  const Finished finished = job.wait();
  EXPECT_EQ(finished.status, 1) << finished.out << finished.err;
  EXPECT_NE(finished.err.find("heddle"), std::string::npos) << finished.err;
  EXPECT_EQ(node.run({workload("vecadd")}).status, 0);
}

// In the middle of their kernels, or between two.
TEST(Faults, WithSharedFaultsTheNeighbourOfADeadWorkerIsRightOrToldWhy) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(
      "[daemon]\nwarm_workers = 1\n[[device]]\npreset = 'P100'\nmemory = '128M'\nslowdown = 25000\n"
      "copy_slowdown = 10\nshared_faults = true\n");
  ASSERT_TRUE(node.ready()) << node.why();
  const Arguments command{workload("vecadd"), "--size", "4000000", "--check", "sample"};
  Process first = node.spawn_run(command), second = node.spawn_run(command);
  Json sessions;
  ASSERT_TRUE(Node::eventually([&] {
    sessions = node.ask({{"command", "ps"}}).value("sessions", Json::array());
    int running = 0;
    for (const Json& session : sessions) {
      for (const Json& task : session.value("tasks", Json::array())) running += task.value("state", "") == "running";
    }
    return running == 2;
  }));
  const pid_t worker = sessions[0]["tasks"][0]["worker_pid"];
  ASSERT_GT(worker, 1);
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  for (Process* each : {&first, &second}) {
    const Finished finished = each->wait();
    const bool is_right = finished.status == 0 && finished.out.find("PASS") != std::string::npos;
    const bool is_told = finished.status == 1 && finished.err.find("because ") != std::string::npos;
    EXPECT_TRUE(is_right || is_told) << finished.status << finished.out << finished.err;
  }
  EXPECT_EQ(node.run({workload("vecadd")}).status, 0);
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
}

}  // namespace
}  // namespace heddle::e2e
