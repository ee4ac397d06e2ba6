// Programs that do nothing with their device while others wait for it: their memory leaves, and they go on by
// themselves.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <thread>

#include "swapping.h"

namespace heddle::e2e {
namespace {

constexpr const char* kSoon = "[swap]\nidle = '50ms'\n";

// Each has 80 of the device's 128 MiB.
class IdleSwapping : public Swapping {
 protected:
  void SetUp() override {
    HEDDLE_NEEDS_PROGRAM("holds");
    set_up(kSoon + config("128M"));
    first_.emplace(*node_, Arguments{"80"}, 2);
    second_.emplace(*node_, Arguments{"80"}, 2);
    wanted_ = first_->undisturbed("holds");
    ASSERT_NE(wanted_.find("PASS"), std::string::npos) << wanted_;
    first_->waits_at_pipe(1);
    second_->go_on();
  }
  // The second program needs the device, and runs to its end there.
  void second_runs() {
    Process other = second_->spawn("holds");
    expect_right(other, wanted_);
    EXPECT_EQ(state(), "swapped");
    EXPECT_EQ(task().value("gives_way", ""), "idle");
    EXPECT_EQ(swap_used(), 82u << 20);
    EXPECT_TRUE(Node::eventually([&] { return used() == 0; }));
  }
  std::optional<Steps> first_, second_;
  std::string wanted_;
};

TEST_F(IdleSwapping, AProgramThatIsBlockedAtAPipeGivesWay) {
  Process program = first_->spawn("holds");
  ASSERT_TRUE(first_->reaches(program, 1)) << program.out() << node_->log();
  second_runs();
  EXPECT_NE(node_->heddle({"ps"}).out.find("swapped (idle)"), std::string::npos) << node_->heddle({"ps"}).out;
  EXPECT_NE(node_->heddle({"top", "--once"}).out.find("swapped"), std::string::npos);
  first_->go_on();
  expect_right(program, wanted_);
  EXPECT_EQ(program.err(), "");
  expect_nothing_left();
}

TEST_F(IdleSwapping, AStoppedProgramGivesWay) {
  Process program = first_->spawn("holds");
  ASSERT_TRUE(first_->reaches(program, 1)) << program.out() << node_->log();
  const pid_t pid = session()["pid"].get<pid_t>();
  ASSERT_GT(pid, 1);
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  second_runs();
  ASSERT_EQ(::kill(pid, SIGCONT), 0);
  first_->go_on();
  expect_right(program, wanted_);
  expect_nothing_left();
}

// Both are at work and idle by turns, and want the device at the same time.
TEST_F(IdleSwapping, TwoProgramsThatPauseTakeTurns) {
  Process program = first_->spawn("holds");
  ASSERT_TRUE(first_->reaches(program, 1)) << program.out() << node_->log();
  Steps slow(*node_, {"80"}, 2);
  Process other = slow.spawn("holds");
  ASSERT_TRUE(Node::eventually([&] { return other.out().find("step 1\n") != std::string::npos; })) << other.err();
  first_->go(1);
  ASSERT_TRUE(Node::eventually([&] { return program.out().find("step 2\n") != std::string::npos; })) << node_->log();
  slow.go_on();
  expect_right(other, wanted_);
  first_->go(2);
  expect_right(program, wanted_);
  expect_nothing_left();
}

TEST_F(IdleSwapping, HeddledDiesOnTheWay) {
  std::mt19937 random(20266);
  for (int round = 0; round < 4; ++round) {
    Process program = first_->spawn("holds");
    ASSERT_TRUE(first_->reaches(program, 1)) << program.out() << node_->log();
    Process other = second_->spawn("holds");
    for (int death = 0; death < 3; ++death) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30 + random() % 60));
      const pid_t heddled = node_->daemon_pid();
      ASSERT_GT(heddled, 1);
      ASSERT_EQ(::kill(heddled, SIGKILL), 0);
    }
    expect_right(other, wanted_);
    first_->go_on();
    expect_right(program, wanted_);
    EXPECT_TRUE(Node::eventually([&] { return node_->empty(); })) << node_->ask({{"command", "ps"}});
    EXPECT_EQ(swap_used(), 0u);
  }
  expect_nothing_left();
}

TEST_F(IdleSwapping, AProgramThatIsKilledMeanwhileLeavesNothing) {
  Process program = first_->spawn("holds");
  ASSERT_TRUE(first_->reaches(program, 1)) << program.out() << node_->log();
  const pid_t pid = session()["pid"].get<pid_t>();
  ASSERT_GT(pid, 1);
  second_runs();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_EQ(program.wait().status, 128 + SIGKILL);
  expect_nothing_left();
}

// Three hold 38 of 128 MiB each, and want 40 more, which nobody would ever give back.
TEST_F(Swapping, ThreeProgramsThatWaitForEachOtherAllEndWell) {
  HEDDLE_NEEDS_PROGRAM("holds");
  set_up("[swap]\nidle = '0s'\n" + config("128M"));
  std::deque<Steps> steps;
  std::vector<Process> programs;
  for (int i = 0; i < 3; ++i) steps.emplace_back(*node_, Arguments{"36", "40"}, 2);
  const std::string wanted = steps[0].undisturbed("holds");
  ASSERT_NE(wanted.find("PASS"), std::string::npos) << wanted;
  for (Steps& each : steps) programs.push_back(each.spawn("holds"));
  for (const Process& each : programs)
    ASSERT_TRUE(Node::eventually([&] { return each.out().find("step 1\n") != std::string::npos; })) << each.err();
  for (Steps& each : steps) each.go(1);
  // The first to go on stands before its last step, and the others wait for what it has.
  const auto at_last = [](const Process& each) { return each.out().find("step 2\n") != std::string::npos; };
  ASSERT_TRUE(Node::eventually([&] { return std::any_of(programs.begin(), programs.end(), at_last); })) << node_->log();
  EXPECT_GT(swap_used(), 0u);
  for (Steps& each : steps) each.go(2);
  for (Process& each : programs) expect_right(each, wanted);
  expect_nothing_left();
}

}  // namespace
}  // namespace heddle::e2e
