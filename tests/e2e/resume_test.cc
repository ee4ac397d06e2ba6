// Workers are killed while their programs wait: another one goes on, and the programs print what they print
// undisturbed.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <random>
#include <thread>

#include "daemon/testing/fake_gpus.h"
#include "steps.h"

namespace heddle::e2e {
namespace {

std::string config(const std::string& more = "") {
  return "[daemon]\nwarm_workers = 1\n" + more +
         "[[device]]\npreset = 'P100'\nmemory = '256M'\nslowdown = 0\ncopy_slowdown = 0\n";
}

// Its worker is killed before each step.
void expect_outlives(Node& node, Steps& steps, const std::string& name) {
  const std::string wanted = steps.undisturbed(name);
  ASSERT_NE(wanted.find("PASS"), std::string::npos) << wanted;
  Process job = steps.spawn(name);
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_TRUE(steps.reaches(job, step)) << job.out() << node.ask({{"command", "ps"}}) << node.log();
    EXPECT_EQ(steps.task().value("resumptions", 0), step - 1);
    steps.kill_worker();
    steps.go(step);
  }
  const Finished finished = job.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  EXPECT_EQ(finished.out, wanted) << finished.err;
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
  EXPECT_TRUE(node.stop_cleanly());
}

struct Outlives : testing::TestWithParam<std::tuple<const char*, const char*, const char*>> {};

TEST_P(Outlives, ItsWorkers) {
  const auto [name, what, more] = GetParam();
  HEDDLE_NEEDS_PROGRAM(name);
  Node node(config(more));
  ASSERT_TRUE(node.ready()) << node.why();
  Steps steps(node);
  expect_outlives(node, steps, name);
}

INSTANTIATE_TEST_SUITE_P(Programs, Outlives,
                         testing::Values(std::tuple("outlives", "plain", ""),
                                         std::tuple("outlives", "managed_on_device", "managed_memory = 'device'\n"),
                                         std::tuple("outlives", "lent", "[dispatch]\npolicy = 'tfs'\n"),
                                         std::tuple("driver_outlives", "plain", ""),
                                         std::tuple("libraries_outlive", "plain", "")),
                         [](const auto& row) {
                           return std::string(std::get<0>(row.param)) + "_" + std::get<1>(row.param);
                         });

#ifdef HEDDLE_TEST_DRIVER
// Everything is a GPU's but the driver, which is the tests' own (src/device/cuda/testing).
TEST(OutlivesOnAGpu, ItsWorkers) {
  HEDDLE_NEEDS_PROGRAM("outlives");
  ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1);
  Node node(Node::gpu_config());
  ::unsetenv("HEDDLE_CUDA_LIBRARY");
  ASSERT_TRUE(node.ready() && node.warm()) << node.why() << node.log();
  Steps steps(node, {"device"});
  expect_outlives(node, steps, "outlives");
}

TEST(OutlivesOnAGpu, WorkersOfADriverProgram) {
  HEDDLE_NEEDS_PROGRAM("driver_outlives");
  ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1);
  Node node(Node::gpu_config());
  ::unsetenv("HEDDLE_CUDA_LIBRARY");
  ASSERT_TRUE(node.ready() && node.warm()) << node.why() << node.log();
  Steps steps(node);
  expect_outlives(node, steps, "driver_outlives");
}

// As on real ones: the next worker has the variables elsewhere, and nobody knows where they were.
TEST(OutlivesOnAGpu, ItsWorkersAlthoughVariablesMove) {
  HEDDLE_NEEDS_PROGRAM("outlives");
  const daemon::testing::FakeGpus gpus;
  gpus.move_variables();
  std::string config = Node::gpu_config();
  const std::string stay = "variables_stay = true\n";
  config.erase(config.find(stay), stay.size());
  Node node(config);
  ASSERT_TRUE(node.ready() && node.warm()) << node.why() << node.log();
  Steps steps(node, {"device", "names"});
  expect_outlives(node, steps, "outlives");
}
#endif

struct Resume : testing::Test {
  void SetUp() override { ASSERT_TRUE(node.ready()) << node.why(); }
  Node node{config()};
  Steps steps{node};
};

TEST_F(Resume, TheDeathsOfHeddledAndOfTheWorkerAtOnce) {
  HEDDLE_NEEDS_PROGRAM("outlives");
  const std::string wanted = steps.undisturbed("outlives");
  Process job = steps.spawn("outlives");
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_TRUE(steps.reaches(job, step)) << job.out() << node.log();
    const pid_t worker = steps.worker(), heddled = node.daemon_pid();
    ASSERT_GT(worker, 1);
    ASSERT_GT(heddled, 1);
    ASSERT_EQ(::kill(step % 2 ? heddled : worker, SIGKILL), 0);
    ASSERT_EQ(::kill(step % 2 ? worker : heddled, SIGKILL), 0);
    steps.go(step);
  }
  const Finished finished = job.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  EXPECT_EQ(finished.out, wanted) << finished.err;
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

// Its memory is whole, but nobody knows how much of the kernel was done.
TEST(ResumeAtWork, AWorkerThatDiesInMidKernelFailsItsProgram) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(
      "[daemon]\nwarm_workers = 1\n[durability]\nlevel = 'off'\n[[device]]\npreset = 'P100'\nmemory = '64M'\nslowdown "
      "= 25000\ncopy_slowdown = 1\n");
  ASSERT_TRUE(node.ready()) << node.why();
  Process job = node.spawn_run({workload("vecadd"), "--size", "4000000", "--check", "sample"});
  const pid_t worker = node.stop_at_work();
  ASSERT_GT(worker, 1) << node.ask({{"command", "ps"}});
  EXPECT_EQ(node.ask({{"command", "ps"}})["sessions"][0]["tasks"][0]["revocable"], true);
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  const Finished finished = job.wait();
  EXPECT_EQ(finished.status, 1) << finished.out << finished.err;
  EXPECT_NE(finished.err.find("work of the program's was under way"), std::string::npos) << finished.err;
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

// The same where work is kept that can be run again: three deaths, each in the middle of kernels. With several streams
// a slow machine shows one's result while the other's kernels go on, which then cannot be run again
// (docs/revocation.md); so each worker is stopped first, to look whether its work could be just then. With one stream
// and one kernel it always can, and all deaths are in the same kernel.
struct RunAgain : testing::TestWithParam<std::tuple<const char*, const char*>> {
  static std::string name(const testing::TestParamInfo<ParamType>& info) {
    return std::string(std::get<0>(info.param)) + "_" + (one_kernel(info.param) ? "one_kernel" : "streams");
  }
  static bool one_kernel(const ParamType& param) { return std::string(std::get<1>(param)) == "1"; }
};

TEST_P(RunAgain, WithEpochs) {
  HEDDLE_NEEDS_WORKLOADS();
  const auto [level, streams] = GetParam();
  Node node("[daemon]\nwarm_workers = 1\n[durability]\nlevel = '" + std::string(level) +
            "'\n[[device]]\npreset = 'P100'\nmemory = '64M'\nslowdown = 20000\ncopy_slowdown = 1\n");
  ASSERT_TRUE(node.ready()) << node.why();
  Process job = node.spawn_run({workload("vecadd"), "--size", "4000000", "--check", "sample", "--streams", streams,
                                "--chunk", one_kernel(GetParam()) ? "4000000" : "65536"});
  pid_t last = 0;
  for (int death = 0; death < 3; ++death) {
    last = node.kill_at_work(last);
    ASSERT_GT(last, 1) << job.out() << node.ask({{"command", "ps"}}) << node.log();
  }
  const Finished finished = job.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  EXPECT_NE(finished.out.find("PASS"), std::string::npos) << finished.out;
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

INSTANTIATE_TEST_SUITE_P(Levels, RunAgain, testing::Combine(testing::Values("long", "full"), testing::Values("1", "3")),
                         RunAgain::name);

// A program whose worker is killed at any moment is right to its end, or up to where it is told why it cannot go on.
TEST(ResumeAtWork, AtAnyMomentAProgramIsRightOrToldWhy) {
  HEDDLE_NEEDS_PROGRAM("outlives");
  Node node(config());
  ASSERT_TRUE(node.ready()) << node.why();
  Steps steps(node, {}, 100);
  const std::string wanted = steps.undisturbed("outlives");
  steps.go_on();
  std::mt19937 random(20261);
  int kills = 0, right = 0;
  constexpr int kRounds = 15;
  for (int round = 0; round < kRounds; ++round) {
    Process job = steps.spawn("outlives");
    for (int i = 0; i < 3 && job.running(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1 + random() % 60));
      const pid_t victim = steps.worker();
      if (victim > 1) kills += ::kill(victim, SIGKILL) == 0;
    }
    const Finished finished = job.wait();
    ASSERT_NE(finished.status, -1) << "round " << round << ": it hangs\n" << finished.out << node.log();
    if (finished.status == 0) {
      EXPECT_EQ(finished.out, wanted) << "round " << round;
      ++right;
      continue;
    }
    EXPECT_EQ(finished.status, 1) << finished.out << finished.err;
    // Behind the error the kernel's last words may follow.
    const size_t told = finished.out.find(": 719 ");
    ASSERT_NE(told, std::string::npos) << finished.out;
    const std::string before = finished.out.substr(0, finished.out.rfind('\n', told) + 1);
    EXPECT_EQ(before, wanted.substr(0, before.size())) << "round " << round;
    ASSERT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
  }
  std::printf("%d workers were killed; %d of %d programs were right to their end\n", kills, right, kRounds);
  EXPECT_TRUE(node.stop_cleanly());
}

TEST_F(Resume, AProgramThatIsKilledMeanwhileLeavesNothing) {
  HEDDLE_NEEDS_PROGRAM("outlives");
  Process job = steps.spawn("outlives");
  ASSERT_TRUE(steps.reaches(job, 1)) << job.out() << node.log();
  const Json ps = node.ask({{"command", "ps"}});
  steps.kill_worker();
  ASSERT_EQ(::kill(ps["sessions"][0]["pid"].get<pid_t>(), SIGKILL), 0);
  EXPECT_EQ(job.wait().status, 128 + SIGKILL);
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
  EXPECT_TRUE(node.stop_cleanly());
}

}  // namespace
}  // namespace heddle::e2e
