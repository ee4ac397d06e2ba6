// Workers are killed in the middle of work that can be run again just then: nobody loses anything, and programs print
// what they print undisturbed.

#include <gtest/gtest.h>

#include "core/sanitizer.h"
#include "steps.h"

namespace heddle::e2e {
namespace {

std::string run_again_config(const std::string& slowdown, const std::string& more = "", int devices = 1,
                             const std::string& level = "full") {
  return "[daemon]\nwarm_workers = 2\n" + more + "[durability]\nlevel = '" + level +
         "'\n[[device]]\npreset = 'P100'\ncount = " + std::to_string(devices) +
         "\nmemory = '256M'\nslowdown = " + slowdown + "\ncopy_slowdown = 10\n";
}

struct Way {
  const char* name;
  const char* slowdown;
  const char* daemon = "";  // of its configuration
};

void PrintTo(const Way& each, std::ostream* out) {
  *out << each.name;
}

// What each does stands in programs/run_again.cu.
const Way kWays[] = {{"reductions", "700"},
                     {"overwritten", "500"},
                     {"full_log", "200", "ring_records = '128K'\n"},
                     {"full_bulk", "500", "ring_bulk = '128K'\n"},
                     {"one_copy", "200"}};

struct InTheMiddle : testing::TestWithParam<Way> {};

void expect_nothing_lost(Node& node, Process& job, const std::string& wanted) {
  const Finished finished = job.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  EXPECT_EQ(finished.out, wanted) << finished.err << node.log();
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

bool kill_at_work_three_times(Node& node) {
  pid_t last = 0;
  for (int death = 0; death < 3 && last >= 0; ++death) last = node.kill_at_work(last);
  return last > 0;
}

TEST_P(InTheMiddle, NothingIsLost) {
  HEDDLE_NEEDS_PROGRAM("run_again");
  Node node(run_again_config(GetParam().slowdown, GetParam().daemon));
  ASSERT_TRUE(node.ready()) << node.why();
  const Arguments command{program("run_again"), GetParam().name};
  const Finished undisturbed = node.run(command);
  ASSERT_EQ(undisturbed.status, 0) << undisturbed.out << undisturbed.err;
  // On a machine that is busy a program may come to its end before its worker was caught at work three times.
  bool killed = false;
  for (int tries = 0; tries < 3 && !killed; ++tries) {
    Process job = node.spawn_run(command);
    killed = kill_at_work_three_times(node);
    ASSERT_NO_FATAL_FAILURE(expect_nothing_lost(node, job, undisturbed.out));
  }
  EXPECT_TRUE(killed) << node.log();
}

INSTANTIATE_TEST_SUITE_P(Of, InTheMiddle, testing::ValuesIn(kWays),
                         [](const auto& instance) { return std::string(instance.param.name); });

// Products that add to what is there, and random numbers that go on where they were. Between two deaths the program
// gets on, so that they are in calls of each kind.
TEST(RunAgain, CallsOfLibraries) {
  HEDDLE_NEEDS_PROGRAM("libraries_outlive");
  Node node(run_again_config("1500000"));
  ASSERT_TRUE(node.ready()) << node.why();
  Steps steps(node, {}, 60);
  const std::string wanted = steps.undisturbed("libraries_outlive");
  steps.go_on();
  Process job = steps.spawn("libraries_outlive");
  pid_t last = 0;
  for (int death = 0; death < 8; ++death) {
    const size_t printed = job.out().size();
    ASSERT_TRUE(Node::eventually([&] { return job.out().size() > printed; })) << printed << node.log();
    last = node.kill_at_work(last);
    ASSERT_GT(last, 1) << death << job.out() << node.ask({{"command", "ps"}}) << node.log();
  }
  expect_nothing_lost(node, job, wanted);
}

// What it waits for on one stream is there although another one's kernel goes on, which is run again when the worker
// dies after that: without the first stream's work, which the program has seen.
struct TwoStreams : testing::TestWithParam<const char*> {};

TEST_P(TwoStreams, WhoWaitsForOneDoesNotWaitForTheOthersLongKernel) {
  HEDDLE_NEEDS_PROGRAM("two_streams");
  Node node(run_again_config("2000", "", 1, GetParam()));
  ASSERT_TRUE(node.ready()) << node.why();
  const Finished undisturbed = node.run({program("two_streams")});
  ASSERT_EQ(undisturbed.status, 0) << undisturbed.out << undisturbed.err;
  const std::string waited = "8 waits before the long kernel was done\n";
  ASSERT_EQ(undisturbed.out.substr(0, waited.size()), waited);
  Process job = node.spawn_run({program("two_streams")});
  ASSERT_TRUE(Node::eventually([&] { return job.out().size() >= waited.size(); })) << job.out() << node.log();
  pid_t last = 0;
  for (int death = 0; death < 2; ++death) {
    last = node.kill_at_work(last);
    ASSERT_GT(last, 1) << death << job.out() << node.ask({{"command", "ps"}}) << node.log();
  }
  expect_nothing_lost(node, job, undisturbed.out);
}

INSTANTIATE_TEST_SUITE_P(At, TwoStreams, testing::Values("full", "long"),
                         [](const auto& instance) { return std::string(instance.param); });

// Copies between software devices go through the program. Nothing tells how far one is when the first device's worker
// dies; so one dies in each step.
TEST(RunAgain, BesideCopiesFromDeviceToDevice) {
  HEDDLE_NEEDS_PROGRAM("copies_beside");
  Node node(run_again_config("1000", "", 2), "sa");
  ASSERT_TRUE(node.ready()) << node.why();
  Steps steps(node, {kSanitized ? "1" : "4"});  // copies; four took AddressSanitizer 109 s
  const std::string wanted = steps.undisturbed("copies_beside");
  Process job = steps.spawn("copies_beside");
  pid_t last = 0;
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_TRUE(steps.begins(job, step)) << job.out() << job.err() << node.log();
    steps.go(step);
    last = node.kill_at_work(last, 0);
    ASSERT_GT(last, 1) << step << job.out() << node.ask({{"command", "ps"}}) << node.log();
  }
  expect_nothing_lost(node, job, wanted);
}

}  // namespace
}  // namespace heddle::e2e
