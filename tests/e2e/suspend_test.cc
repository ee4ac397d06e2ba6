// Jobs are suspended and resumed between their steps and in mid-kernel: their programs print what they print
// undisturbed, and others compute meanwhile.

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <tuple>

#include "steps.h"
#include "swapping.h"

namespace heddle::e2e {
namespace {

std::string suspending_config(const std::string& more = "", int slowdown = 0) {
  return "[daemon]\nwarm_workers = 1\n" + more +
         "[[device]]\npreset = 'P100'\nmemory = '256M'\nslowdown = " + std::to_string(slowdown) +
         "\ncopy_slowdown = 0\n";
}

struct Suspending : Swapping {};

struct BetweenSteps : Suspending, testing::WithParamInterface<std::tuple<const char*, const char*, const char*>> {};

TEST_P(BetweenSteps, AJobGoesOnWhereItWas) {
  const auto [name, what, more] = GetParam();
  HEDDLE_NEEDS_PROGRAM(name);
  set_up(suspending_config(more));
  Steps steps(*node_);
  const std::string wanted = steps.undisturbed(name);
  ASSERT_NE(wanted.find("PASS"), std::string::npos) << wanted;
  Process program = steps.spawn(name);
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_TRUE(steps.reaches(program, step)) << program.out() << node_->log();
    expect_works({"suspend", job()});
    EXPECT_EQ(state(), "suspended");
    steps.go(step);
    if (!workload("vecadd").empty()) {
      const Finished other = node_->run({workload("vecadd"), "--size", "10000"});
      EXPECT_EQ(other.status, 0) << other.out << other.err;
    }
    EXPECT_EQ(state(), "suspended");
    expect_works({"resume", job()});
  }
  expect_right(program, wanted);
  expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Programs, BetweenSteps,
                         testing::Values(std::tuple("outlives", "plain", ""),
                                         std::tuple("outlives", "managed_on_device", "managed_memory = 'device'\n"),
                                         std::tuple("outlives", "lent", "[dispatch]\npolicy = 'fs'\n"),
                                         std::tuple("driver_outlives", "plain", ""),
                                         std::tuple("libraries_outlive", "plain", "")),
                         [](const auto& row) {
                           return std::string(std::get<0>(row.param)) + "_" + std::get<1>(row.param);
                         });

#ifdef HEDDLE_TEST_DRIVER
// Everything is a GPU's but the driver, which is the tests' own (src/device/cuda/testing).
TEST_F(Suspending, OnAGpuAJobGoesOnWhereItWas) {
  HEDDLE_NEEDS_PROGRAM("outlives");
  ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1);
  set_up(Node::gpu_config());
  ::unsetenv("HEDDLE_CUDA_LIBRARY");
  ASSERT_TRUE(node_->warm()) << node_->log();
  Steps steps(*node_, {"device"});
  const std::string wanted = steps.undisturbed("outlives");
  Process program = steps.spawn("outlives");
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_TRUE(steps.reaches(program, step)) << program.out() << node_->log();
    expect_works({"suspend", job()});
    EXPECT_FALSE(session()["tasks"][0].contains("worker_pid"));
    steps.go(step);
    expect_works({"resume", job()});
  }
  expect_right(program, wanted);
  expect_nothing_left();
}

// As on real ones, where a second worker would have the program's variables elsewhere.
TEST_F(Suspending, OnAGpuWhereVariablesDoNotStayAJobThatHasSomeIsRefused) {
  HEDDLE_NEEDS_PROGRAM("outlives");
  std::string config = Node::gpu_config();
  const std::string stay = "variables_stay = true\n";
  config.erase(config.find(stay), stay.size());
  ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1);
  set_up(config);
  ::unsetenv("HEDDLE_CUDA_LIBRARY");
  ASSERT_TRUE(node_->warm()) << node_->log();
  Steps steps(*node_, {"device"});
  Process program = steps.spawn("outlives");
  ASSERT_TRUE(Node::eventually([&] { return program.out().find("step 1\n") != std::string::npos; })) << program.out();
  const Finished refused = node_->heddle({"suspend", job()});
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(refused.err.find("variables_stay"), std::string::npos) << refused.err;
  for (int step = 1; step <= kSteps; ++step) steps.go(step);
  const Finished finished = program.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node_->log();
  expect_nothing_left();
}
#endif

// Whatever the program is at just then, nothing is lost.
TEST_F(Suspending, AtAnyMomentNothingIsLost) {
  HEDDLE_NEEDS_PROGRAM("outlives");
  set_up(suspending_config());
  constexpr int kMany = 60;
  Steps steps(*node_, {}, kMany);
  const std::string wanted = steps.undisturbed("outlives");
  steps.go_on();
  std::mt19937 random(20262);
  int suspended = 0;
  for (int round = 0; round < 10; ++round) {
    Process program = steps.spawn("outlives");
    ASSERT_TRUE(Node::eventually([&] { return session().is_object() || !program.running(); }));
    while (program.running()) {
      const Json now = session();
      if (!now.is_object()) break;
      const std::string job = std::to_string(now["job"].get<uint64_t>());
      suspended += node_->heddle({"suspend", job}).status == 0;
      (void)node_->heddle({"resume", job});
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
    }
    const Finished finished = program.wait();
    ASSERT_EQ(finished.status, 0) << "round " << round << finished.out << finished.err << node_->log();
    ASSERT_EQ(finished.out, wanted) << "round " << round;
  }
  std::printf("suspended %d times\n", suspended);
  EXPECT_GT(suspended, 10);
  expect_nothing_left();
}

// A kernel of about 1.6 s.
struct InMidKernel : Suspending, testing::WithParamInterface<const char*> {
  void SetUp() override {
    HEDDLE_NEEDS_WORKLOADS();
    set_up(suspending_config(GetParam(), 25000));
    program_.emplace(node_->spawn_run({workload("vecadd"), "--size", "4000000", "--check", "sample"}));
    ASSERT_TRUE(Node::eventually([&] {
      const Json now = session();
      return now.is_object() && now["usage"]["busy_now"] == true;
    }));
  }
  void expect_right() {
    const Finished finished = program_->wait();
    EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node_->log();
    expect_nothing_left();
  }
  std::optional<Process> program_;
};

TEST_P(InMidKernel, TheKernelIsWaitedFor) {
  const Finished told = node_->heddle({"suspend", job(), "--json"});
  EXPECT_EQ(told.status, 0) << told.err;
  const Json answer = Json::parse(told.out, nullptr, false);
  EXPECT_EQ(answer["suspended"], true) << told.out;
  EXPECT_EQ(answer["suspending_tasks"], 0) << told.out;
  EXPECT_EQ(state(), "suspended");
  EXPECT_TRUE(program_->running());
  expect_works({"resume", job()});
  expect_right();
}

TEST_P(InMidKernel, CtrlCEndsTheWaitingAlone) {
  Process command = node_->spawn({"suspend", job()});
  ASSERT_TRUE(reaches("suspending") || state() == "suspended");
  command.signal(SIGINT);
  const Finished told = command.wait();
  if (told.status != 0) {  // else the kernel had ended
    EXPECT_EQ(told.status, 130);
    EXPECT_NE(told.err.find("'heddle resume " + job() + "' takes that back"), std::string::npos) << told.err;
  }
  ASSERT_TRUE(reaches("suspended"));
  expect_works({"resume", job()});
  expect_right();
}

INSTANTIATE_TEST_SUITE_P(Policies, InMidKernel, testing::Values("", "[dispatch]\npolicy = 'fs'\n"),
                         [](const auto& row) { return row.index == 0 ? "open" : "fs"; });

struct Suspended : Suspending {
  void SetUp() override {
    HEDDLE_NEEDS_PROGRAM("outlives");
    set_up(suspending_config());
    steps_.emplace(*node_);
    wanted_ = steps_->undisturbed("outlives");
    program_.emplace(steps_->spawn("outlives"));
    ASSERT_TRUE(steps_->reaches(*program_, 1)) << program_->out() << node_->log();
    pid_ = session()["pid"].get<pid_t>();
    expect_works({"suspend", job()});
  }
  std::optional<Steps> steps_;
  std::optional<Process> program_;
  std::string wanted_;
  pid_t pid_ = -1;
};

TEST_F(Suspended, CancelledItLeavesNothing) {
  expect_works({"cancel", job()});
  steps_->go_on();
  EXPECT_NE(program_->wait().status, 0);
  expect_nothing_left();
}

TEST_F(Suspended, ItsProgramsEndLeavesNothing) {
  ASSERT_GT(pid_, 1);
  ASSERT_EQ(::kill(pid_, SIGKILL), 0);
  EXPECT_EQ(program_->wait().status, 128 + SIGKILL);
  expect_nothing_left();
}

TEST_F(Suspended, ItStaysSoWhenHeddledDies) {
  const pid_t heddled = node_->daemon_pid();
  ASSERT_GT(heddled, 1);
  ASSERT_EQ(::kill(heddled, SIGKILL), 0);
  ASSERT_TRUE(reaches("suspended"));
  steps_->go_on();
  expect_works({"resume", job()});
  expect_right(*program_, wanted_);
  expect_nothing_left();
}

TEST_F(Suspended, TheCommandsSayWhatIsSo) {
  const Finished again = node_->heddle({"suspend", job()});
  EXPECT_EQ(again.status, 1);
  EXPECT_NE(again.err.find("is suspended already: 'heddle resume " + job() + "'"), std::string::npos) << again.err;
  EXPECT_NE(node_->heddle({"ps"}).out.find("suspended"), std::string::npos);
  expect_works({"resume", job()});
  const Finished not_suspended = node_->heddle({"resume", job()});
  EXPECT_EQ(not_suspended.status, 1);
  EXPECT_NE(not_suspended.err.find("is not suspended"), std::string::npos) << not_suspended.err;
  steps_->go_on();
  EXPECT_EQ(program_->wait().out, wanted_);
  expect_nothing_left();
}

}  // namespace
}  // namespace heddle::e2e
