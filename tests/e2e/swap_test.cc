// Suspended jobs' memory leaves its device and comes back: their programs print what they print undisturbed, and others
// that do not fit beside them run meanwhile.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "swapping.h"

namespace heddle::e2e {
namespace {

// Each has 80 of the device's 128 MiB. Nobody says that memory is to leave: the second one waits for it.
TEST_F(Swapping, TwoJobsThatDoNotFitTogetherShareADevice) {
  HEDDLE_NEEDS_PROGRAM("holds");
  set_up(config("128M"));
  Steps first(*node_, {"80"}), second(*node_, {"80"});
  const std::string wanted = first.undisturbed("holds");
  ASSERT_NE(wanted.find("PASS"), std::string::npos) << wanted;
  second.go_on();
  Process program = first.spawn("holds");
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_TRUE(first.reaches(program, step)) << program.out() << node_->log();
    expect_works({"suspend", job()});
    Process other = second.spawn("holds");
    expect_right(other, wanted);
    EXPECT_EQ(state(), "swapped");
    EXPECT_EQ(swap_used(), 82u << 20);
    first.go(step);
    expect_works({"resume", job()});
  }
  expect_right(program, wanted);
  expect_nothing_left();
}

TEST_F(Swapping, HeddledDiesOnTheWay) {
  HEDDLE_NEEDS_PROGRAM("holds");
  set_up(config("128M"));
  Steps steps(*node_, {"80"}, 2);
  const std::string wanted = steps.undisturbed("holds");
  Process program = steps.spawn("holds");
  std::mt19937 random(20263);
  const auto kill_heddled = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
    const pid_t heddled = node_->daemon_pid();
    ASSERT_GT(heddled, 1);
    ASSERT_EQ(::kill(heddled, SIGKILL), 0);
  };
  for (int step = 1; step <= 2; ++step) {
    ASSERT_TRUE(steps.reaches(program, step)) << program.out() << node_->log();
    const Json told = node_->ask({{"command", "suspend"}, {"job", session()["job"]}, {"swap", true}});
    ASSERT_FALSE(told.contains("error")) << told;
    kill_heddled();
    ASSERT_TRUE(reaches("swapped")) << session() << node_->log();
    EXPECT_EQ(used(), 0u);
    expect_works({"resume", job()});
    kill_heddled();
    steps.go(step);
  }
  expect_right(program, wanted);
  expect_nothing_left();
}

TEST_F(Swapping, AProgramThatIsKilledOnTheWayLeavesNothing) {
  HEDDLE_NEEDS_PROGRAM("holds");
  set_up(config("128M"));
  Steps steps(*node_, {"80"});
  for (int round = 0; round < 6; ++round) {
    Process program = steps.spawn("holds");
    ASSERT_TRUE(steps.reaches(program, 1)) << program.out() << node_->log();
    const pid_t pid = session()["pid"].get<pid_t>();
    ASSERT_GT(pid, 1);
    const Json told = node_->ask({{"command", "suspend"}, {"job", session()["job"]}, {"swap", true}});
    ASSERT_FALSE(told.contains("error")) << told;
    if (round % 2 == 1) {
      ASSERT_TRUE(reaches("swapped"));
      expect_works({"resume", job()});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * round));
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    EXPECT_EQ(program.wait().status, 128 + SIGKILL);
    EXPECT_TRUE(Node::eventually([&] { return node_->empty(); })) << node_->ask({{"command", "ps"}});
    EXPECT_EQ(swap_used(), 0u);
  }
  expect_nothing_left();
}

// With everything that CUDA has in use: textures, streams, events, variables and their addresses.
TEST_F(Swapping, AJobGoesOnOnAnotherDevice) {
  HEDDLE_NEEDS_PROGRAM("outlives");
  HEDDLE_NEEDS_PROGRAM("holds");
  set_up(config("64M", 2));
  Steps steps(*node_);
  const std::string wanted = steps.undisturbed("outlives");
  Process program = steps.spawn("outlives");
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_TRUE(steps.reaches(program, step)) << program.out() << node_->log();
    const Json before = task()["device"];
    expect_works({"suspend", "--swap", job()});
    EXPECT_EQ(state(), "swapped");
    // Fills the device that is emptier, which is where the job was.
    Steps filler(*node_, {"60"}, 1);
    Process other = filler.spawn("holds");
    ASSERT_TRUE(Node::eventually([&] { return used(before.get<size_t>()) >= 60u << 20 || used(0) >= 60u << 20; }));
    const bool where_it_was = used(before.get<size_t>()) > 0;
    steps.go(step);
    expect_works({"resume", job()});
    ASSERT_TRUE(Node::eventually([&] { return state() == "running" || !program.running(); })) << session();
    if (where_it_was && program.running()) {
      EXPECT_NE(task()["device"], before);
    }
    filler.go_on();
    EXPECT_EQ(other.wait().status, 0);
  }
  expect_right(program, wanted);
  expect_nothing_left();
}

// Whatever the program is at just then, and wherever its memory is, nothing is lost.
TEST_F(Swapping, AtAnyMomentNothingIsLost) {
  HEDDLE_NEEDS_PROGRAM("outlives");
  set_up(config("64M", 2));
  Steps steps(*node_, {}, 60);
  const std::string wanted = steps.undisturbed("outlives");
  steps.go_on();
  std::mt19937 random(20265);
  int swapped = 0;
  for (int round = 0; round < 6; ++round) {
    Process program = steps.spawn("outlives");
    ASSERT_TRUE(Node::eventually([&] { return session().is_object() || !program.running(); }));
    while (program.running()) {
      const Json now = session();
      if (!now.is_object()) break;
      (void)node_->ask({{"command", "suspend"}, {"job", now["job"]}, {"swap", true}});
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
      swapped += swap_used() > 0;
      (void)node_->ask({{"command", "resume"}, {"job", now["job"]}});
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
    }
    const Finished finished = program.wait();
    ASSERT_EQ(finished.status, 0) << "round " << round << finished.out << finished.err << node_->log();
    ASSERT_EQ(finished.out, wanted) << "round " << round;
  }
  std::printf("on its way or swapped %d times\n", swapped);
  EXPECT_GT(swapped, 10);
  expect_nothing_left();
}

TEST_F(Swapping, TheCommandsSayWhatIsSo) {
  HEDDLE_NEEDS_PROGRAM("holds");
  set_up("[swap]\nhost = '100M'\n" + config("256M"));
  Steps steps(*node_, {"80"}), more(*node_, {"80"});
  const std::string wanted = steps.undisturbed("holds");
  Process program = steps.spawn("holds");
  ASSERT_TRUE(steps.reaches(program, 1)) << program.out() << node_->log();
  const std::string first = job();
  expect_works({"suspend", "--swap", first});
  EXPECT_NE(node_->heddle({"ps"}).out.find("swapped"), std::string::npos);
  EXPECT_NE(node_->heddle({"devices"}).out.find("82 MiB in swap space, of 100 MiB"), std::string::npos)
      << node_->heddle({"devices"}).out;
  Process second = more.spawn("holds");
  ASSERT_TRUE(Node::eventually([&] { return second.out().find("step 1\n") != std::string::npos; }));
  const Json ps = node_->ask({{"command", "ps"}});
  const std::string other = std::to_string(ps["sessions"][1]["job"].get<uint64_t>());
  const Finished refused = node_->heddle({"suspend", "--swap", other});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("82 MiB of the 100 MiB of swap space (swap.host) is in use"), std::string::npos)
      << refused.err;
  more.go_on();
  expect_right(second, wanted);
  steps.go_on();
  expect_works({"resume", first});
  expect_right(program, wanted);
  expect_nothing_left();
}

#ifdef HEDDLE_TEST_DRIVER
// Everything is a GPU's but the driver, which is the tests' own (src/device/cuda/testing): keepers copy, and die.
class SwappingOnAGpu : public Swapping {
 protected:
  void SetUp() override {
    HEDDLE_NEEDS_PROGRAM("holds");
    ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1);
    set_up("[swap]\nidle = '50ms'\n" + Node::gpu_config());
    ::unsetenv("HEDDLE_CUDA_LIBRARY");
    ASSERT_TRUE(node_->warm()) << node_->log();
  }
};

// Each has 142 of 256 MiB.
TEST_F(SwappingOnAGpu, AProgramThatDoesNothingGivesWay) {
  Steps first(*node_, {"140"}, 2), second(*node_, {"140"}, 2);
  const std::string wanted = first.undisturbed("holds");
  second.go_on();
  Process program = first.spawn("holds");
  ASSERT_TRUE(first.reaches(program, 1)) << program.out() << node_->log();
  Process other = second.spawn("holds");
  expect_right(other, wanted);
  EXPECT_EQ(state(), "swapped");
  EXPECT_EQ(task().value("gives_way", ""), "idle");
  EXPECT_EQ(swap_used(), 142u << 20);
  first.go_on();
  expect_right(program, wanted);
  expect_nothing_left();
}

TEST_F(SwappingOnAGpu, KeepersCopyAndTheirSuccessorsCopyAgain) {
  Steps steps(*node_, {"80"});
  const std::string wanted = steps.undisturbed("holds");
  Process program = steps.spawn("holds");
  std::mt19937 random(20264);
  const auto kill_keepers = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
    const std::vector<pid_t> killed = node_->keeper_pids();
    for (const pid_t keeper : killed) ASSERT_EQ(::kill(keeper, SIGKILL), 0);
    // It takes a while to end, and the next one is not to be killed in the same copy: that would be one too many.
    ASSERT_TRUE(Node::eventually([&] {
      const std::vector<pid_t> left = node_->keeper_pids();
      return std::find_first_of(left.begin(), left.end(), killed.begin(), killed.end()) == left.end();
    }));
  };
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_TRUE(steps.reaches(program, step)) << program.out() << node_->log();
    const Json told = node_->ask({{"command", "suspend"}, {"job", session()["job"]}, {"swap", true}});
    ASSERT_FALSE(told.contains("error")) << told;
    if (step > 1) kill_keepers();
    ASSERT_TRUE(reaches("swapped")) << session() << node_->log();
    EXPECT_EQ(swap_used(), 82u << 20);
    steps.go(step);
    expect_works({"resume", job()});
    if (step > 1) kill_keepers();
  }
  expect_right(program, wanted);
  expect_nothing_left();
}
#endif

}  // namespace
}  // namespace heddle::e2e
