// Programs that run with a part of their memory on the host: their results are right, whatever is done to them.

#include <gtest/gtest.h>
#include <signal.h>

#include "core/sanitizer.h"
#include "swapping.h"

namespace heddle::e2e {
namespace {

// Of the device's 64 MiB a program at its first step holds 42; the others are of 24 MiB in two pieces.
class EagerLaunch : public Swapping {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a kernel of this size takes a sanitizer minutes; daemon/eager_test.cc runs there";
  }
  void set_up(const char* level = "off") {
    Swapping::set_up("[daemon]\nwarm_workers = 1\neager_launch = true\n[swap]\nidle = '0s'\n[durability]\nlevel = '" +
                     std::string(level) +
                     "'\n[[device]]\npreset = 'P100'\nmemory = '64M'\nslowdown = 0\ncopy_slowdown = 0\n");
    if (HasFatalFailure()) return;
    holds_ = std::make_unique<Steps>(*node_, Arguments{"40"}, 1);
    held_.emplace(holds_->spawn("holds"));
    ASSERT_TRUE(holds_->reaches(*held_, 1)) << held_->out() << node_->log();
  }
  static Arguments convolution(const char* passes) {
    return {workload("conv2d"), "--width", "1024", "--height", "3072", "--iterations", passes, "--check", "sample"};
  }
  static Arguments product() {
    return {workload("mm2"), "--rows", "1024", "--inner", "1024", "--columns", "1024", "--check", "sample"};
  }
  Json eager() {
    const Json ps = node_->ask({{"command", "ps"}});
    for (const Json& session : ps.value("sessions", Json::array()))
      for (const Json& task : session["tasks"])
        if (task.value("reason", "").rfind("launched eagerly", 0) == 0) return task;
    return Json::object();
  }
  bool runs_eagerly() {
    return Node::eventually([&] { return eager().contains("on_host") && eager().contains("worker_pid"); });
  }
  void release() {
    holds_->go(1);
    EXPECT_EQ(held_->wait().status, 0);
  }
  static void expect_pass(Process& program) {
    const Finished finished = program.wait();
    EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
    EXPECT_NE(finished.out.find("PASS"), std::string::npos) << finished.out;
  }

  std::unique_ptr<Steps> holds_;
  std::optional<Process> held_;
};

TEST_F(EagerLaunch, APartOfTheMemoryIsOnTheHost) {
  HEDDLE_NEEDS_WORKLOADS();
  set_up();
  Process program = node_->spawn_run(convolution("8"));
  EXPECT_TRUE(runs_eagerly()) << node_->log();
  EXPECT_EQ(eager().value("on_host", 0), 12 << 20);
  expect_pass(program);
  release();
  expect_nothing_left();
}

TEST_F(EagerLaunch, ItIsPromotedInTheMiddleOfTheWork) {
  HEDDLE_NEEDS_WORKLOADS();
  set_up();
  Process program = node_->spawn_run(convolution("30"));
  ASSERT_TRUE(runs_eagerly()) << node_->log();
  release();
  // What it has under way ends first: a kernel that nobody paces takes as long as the machine needs.
  constexpr Duration kKernel = std::chrono::seconds(120);
  EXPECT_TRUE(Node::eventually([&] { return task().value("promotions", 0) > 0; }, kKernel)) << session();
  expect_pass(program);
  expect_nothing_left();
}

TEST_F(EagerLaunch, WorkersThatAreKilledAtItLoseNothingThatCanBeRunAgain) {
  HEDDLE_NEEDS_WORKLOADS();
  set_up("full");
  Process program = node_->spawn_run(convolution("30"));
  for (int kill = 0; kill < 3; ++kill) {
    ASSERT_TRUE(runs_eagerly()) << node_->log();
    const pid_t worker = eager()["worker_pid"];
    ASSERT_EQ(::kill(worker, SIGKILL), 0);
    ASSERT_TRUE(Node::eventually([&] { return eager().value("worker_pid", worker) != worker; })) << node_->log();
  }
  expect_pass(program);
  release();
  expect_nothing_left();
}

TEST_F(EagerLaunch, HeddledDiesMeanwhile) {
  HEDDLE_NEEDS_WORKLOADS();
  set_up();
  Process program = node_->spawn_run(convolution("30"));
  ASSERT_TRUE(runs_eagerly()) << node_->log();
  ASSERT_EQ(::kill(node_->daemon_pid(), SIGKILL), 0);
  ASSERT_TRUE(Node::eventually([&] { return session().is_object(); }));
  release();
  expect_pass(program);
  expect_nothing_left();
}

// Five pieces of 4 MiB: the result alone does not fit.
TEST_F(EagerLaunch, AProductWhoseResultIsOnTheHost) {
  HEDDLE_NEEDS_WORKLOADS();
  set_up();
  Process more = node_->spawn_run(
      {workload("conv2d"), "--width", "512", "--height", "1024", "--iterations", "400", "--check", "none"});
  ASSERT_TRUE(Node::eventually([&] { return used() >= (46u << 20); }));
  Process program = node_->spawn_run(product());
  EXPECT_TRUE(runs_eagerly()) << node_->log();
  EXPECT_EQ(eager().value("on_host", 0), 4 << 20);
  expect_pass(program);
}

}  // namespace
}  // namespace heddle::e2e
