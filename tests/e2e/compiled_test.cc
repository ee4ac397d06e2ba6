// Programs that heddle cc compiled, under heddle: right results, and what they declared against what they allocated.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <set>

#include "node.h"

namespace heddle::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string compiled(const std::string& name) {
  return std::string(HEDDLE_COMPILED) + "/" + name;
}

struct Compiled : testing::Test {
  void SetUp() override {
    ASSERT_TRUE(node.ready()) << node.why();
    ::setenv("HEDDLE_TASKS", "1", 1);
  }
  void TearDown() override {
    ::unsetenv("HEDDLE_TASKS");
    EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
  }
  Node node;
};

TEST_F(Compiled, DeclaresEveryByteThatItAllocates) {
  const Finished finished = node.run({compiled("declared"), "1048576"});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
  EXPECT_EQ(finished.out, "PASS\n");
  EXPECT_THAT(finished.err, HasSubstr("declared 16777216 bytes, of which 16777216 were allocated, and 0 beside them"));
}

TEST_F(Compiled, WithTheRuntimeLinkedInItsProbesAreRedirected) {
  const Finished finished = node.run({compiled("declared_static"), "1048576"});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
  EXPECT_EQ(finished.out, "PASS\n");
  EXPECT_THAT(finished.err, HasSubstr("declared 16777216 bytes, of which 16777216 were allocated, and 0 beside them"));
}

TEST_F(Compiled, WhatWasDeclaredUsedAndAskedForBesideShowsInPsAndWhatIsNotUsedGoesBack) {
  const std::string go_on = node.directory() + "/go_on";
  Process program = node.spawn_run({compiled("shortfall"), go_on});
  const Json expected = {
      {"tasks", 1}, {"bytes", 16 * kMiB}, {"used", 4 * kMiB}, {"beside", 8 * kMiB}, {"extensions", 1}};
  Json seen = Json::object();
  EXPECT_TRUE(Node::eventually([&] {
    const Json sessions = node.ask({{"command", "ps"}}).value("sessions", Json::array());
    if (sessions.empty() || sessions[0]["tasks"].empty()) return false;
    seen = sessions[0];
    return seen["declared"] == expected && seen["tasks"][0]["memory"] == 12 * kMiB;
  })) << seen
      << node.log();
  EXPECT_THAT(node.heddle({"ps"}).out, testing::ContainsRegex("12 MiB +16 MiB +4 MiB +8 MiB +1 "));
  std::ofstream(go_on) << "go on\n";
  const Finished finished = program.wait();
  EXPECT_EQ(finished.out, "PASS\n") << finished.err << node.log();
}

TEST_F(Compiled, TasksThatShareNothingRunOnTwoDevicesAtOnce) {
  const Finished finished = node.run({compiled("two_tasks")});
  EXPECT_EQ(finished.out, "PASS\n") << finished.err << node.log();
  EXPECT_THAT(finished.err, HasSubstr("task 1: declared 262144 bytes, of which 262144 were allocated"));
  EXPECT_THAT(finished.err, HasSubstr("task 2: declared 262144 bytes, of which 262144 were allocated"));
}

// The program's tasks once they run and hold 8 MiB together: what apart.cu's two buffers need.
Json tasks_with_all_memory(Node& node) {
  Json tasks;
  EXPECT_TRUE(Node::eventually([&] {
    const Json sessions = node.ask({{"command", "ps"}}).value("sessions", Json::array());
    tasks = sessions.empty() ? Json::array() : sessions[0]["tasks"];
    uint64_t memory = 0;
    for (const Json& task : tasks) memory += task["state"] == "running" ? task["memory"].get<uint64_t>() : 0;
    return memory == 8 * kMiB;
  })) << tasks
      << node.log();
  return tasks;
}

std::string go_on(const Node& node) {
  const std::string path = node.directory() + "/go_on";
  std::ofstream(path) << "go on\n";
  return path;
}

TEST_F(Compiled, TasksOfOneDeviceThatShareNothingHoldTwoAtOnce) {
  Process program = node.spawn_run({compiled("apart"), node.directory() + "/go_on"});
  const Json tasks = tasks_with_all_memory(node);
  ASSERT_EQ(tasks.size(), 2u) << tasks;
  EXPECT_NE(tasks[0]["device"], tasks[1]["device"]);
  std::map<std::string, std::set<int>> devices;  // by kind of event
  const Json trace = node.ask({{"command", "trace"}, {"since", 0u}});
  for (const Json& event : trace["events"]) devices[event["kind"]].insert(event["device"].get<int>());
  EXPECT_EQ(devices["task_granted"], (std::set{0, 1}));
  EXPECT_FALSE(devices.contains("task_ended"));
  go_on(node);
  const Finished finished = program.wait();
  EXPECT_EQ(finished.out, "PASS\n") << finished.err << node.log();
  EXPECT_THAT(finished.err, HasSubstr("task 1: declared 4194304 bytes, of which 4194304 were allocated, and 0 beside"));
  EXPECT_THAT(finished.err, HasSubstr("task 2: declared 4194304 bytes, of which 4194304 were allocated, and 0 beside"));
}

TEST_F(Compiled, EventsAroundTasksOfTwoDevicesKeepTheirOrder) {
  const Finished finished = node.run({compiled("apart_timed"), go_on(node)});
  EXPECT_EQ(finished.out, "PASS\n") << finished.err << node.log();
}

struct CompiledTogether : Compiled, testing::WithParamInterface<const char*> {};

TEST_P(CompiledTogether, HoldsOneDevice) {
  Process program = node.spawn_run({compiled(GetParam()), node.directory() + "/go_on"});
  const Json tasks = tasks_with_all_memory(node);
  EXPECT_EQ(tasks.size(), 1u) << tasks;
  go_on(node);
  const Finished finished = program.wait();
  EXPECT_EQ(finished.out, "PASS\n") << finished.err << node.log();
}

INSTANTIATE_TEST_SUITE_P(Joined, CompiledTogether, testing::Values("apart_variable", "apart_pinned"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST_F(Compiled, WithoutSideDevicesTasksOfOneDeviceStayTogether) {
  ::setenv("HEDDLE_LANES", "0", 1);
  Process program = node.spawn_run({compiled("apart"), node.directory() + "/go_on"});
  EXPECT_EQ(tasks_with_all_memory(node).size(), 1u);
  ::unsetenv("HEDDLE_LANES");
  go_on(node);
  EXPECT_EQ(program.wait().out, "PASS\n") << node.log();
}

// One of the two tasks' workers dies in the middle of its kernel, when some blocks have written.
struct SideDevice : testing::TestWithParam<size_t> {
  static int64_t busy_ms(Node& node, const Json& device) {
    const Json devices = node.ask({{"command", "devices"}})["devices"];
    return devices[device.get<size_t>()]["usage"]["busy_ns"].get<int64_t>() / 1'000'000;
  }
};

TEST_P(SideDevice, ThatLosesItsWorkerGoesOnAndTheOtherIsLeftAlone) {
  Node node(
      "[durability]\nlevel = 'full'\n[[device]]\npreset = 'P100'\ncount = 2\nmemory = '64M'\nslowdown = 60000\n"
      "copy_slowdown = 0\n");
  ASSERT_TRUE(node.ready()) << node.why();
  const Finished undisturbed = node.run({compiled("apart")});
  ASSERT_EQ(undisturbed.out, "PASS\n") << undisturbed.err;
  Process program = node.spawn_run({compiled("apart"), node.directory() + "/go_on"});
  const Json before = tasks_with_all_memory(node);
  ASSERT_EQ(before.size(), 2u) << before;
  const size_t victim = GetParam(), other = 1 - victim;
  const int64_t busy = busy_ms(node, before[victim]["device"]);
  ASSERT_TRUE(Node::eventually([&] { return busy_ms(node, before[victim]["device"]) > busy + 300; }));
  ASSERT_EQ(node.kill_at_work(0, before[victim]["virtual_device"]), before[victim]["worker_pid"]) << before;
  Json now;
  EXPECT_TRUE(Node::eventually([&] {
    now = node.ask({{"command", "ps"}})["sessions"][0]["tasks"];
    return now[victim].value("resumptions", 0) == 1 && now[victim]["state"] == "running";
  })) << now;
  EXPECT_EQ(now[other]["worker_pid"], before[other]["worker_pid"]);
  EXPECT_FALSE(now[other].contains("resumptions")) << now;
  go_on(node);
  const Finished finished = program.wait();
  EXPECT_EQ(finished.out, undisturbed.out) << finished.err << node.log();
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

INSTANTIATE_TEST_SUITE_P(Of, SideDevice, testing::Values(0, 1),
                         [](const auto& instance) { return instance.param == 0 ? "the_first" : "the_second"; });

TEST_F(Compiled, ABufferGoesBackAfterItsLastUse) {
  EXPECT_EQ(node.run({compiled("early")}).out, "PASS, holding 1 buffers\n");
  ::setenv("HEDDLE_EAGER_FREE", "0", 1);
  EXPECT_EQ(node.run({compiled("early")}).out, "PASS, holding 3 buffers\n");
  ::unsetenv("HEDDLE_EAGER_FREE");
}

TEST_F(Compiled, ABufferWhoseAddressAKernelKeepsStaysUntilItsFree) {
  EXPECT_EQ(node.run({compiled("early_hidden")}).out, "PASS, holding 3 buffers\n");
}

TEST_F(Compiled, ABufferOfACapturedLaunchStaysUntilItsFree) {
  EXPECT_EQ(node.run({compiled("early_captured")}).out, "PASS, holding 3 buffers\n");
}

struct CompiledWay : Compiled, testing::WithParamInterface<const char*> {};

TEST_P(CompiledWay, RunsWithAllItsUnits) {
  const Finished finished = node.run({compiled(std::string("ways_") + GetParam())});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  EXPECT_EQ(finished.out, "PASS\n");
  EXPECT_THAT(finished.err, HasSubstr("declared 4000 bytes, of which 4000 were allocated"));
}

INSTANTIATE_TEST_SUITE_P(Ways, CompiledWay, testing::Values("variable", "toolkit", "environment", "cmake"),
                         [](const auto& instance) { return std::string(instance.param); });

// Of these the pass proves nothing: they walk arrays of their buffers' addresses, or keep them in a list.
bool stays_lazy(const std::string& workload) {
  return workload == "dwt2d" || workload == "gaussian" || workload == "nn" || workload == "srad_v2";
}

struct CompiledWorkload : Compiled, testing::WithParamInterface<std::tuple<const char*, bool>> {};

TEST_P(CompiledWorkload, IsRight) {
  const auto [name, eager] = GetParam();
  ::setenv("HEDDLE_EAGER_FREE", eager ? "1" : "0", 1);
  const Finished finished = node.run({compiled(name)});
  ::unsetenv("HEDDLE_EAGER_FREE");
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  EXPECT_THAT(finished.out, HasSubstr("PASS"));
  if (stays_lazy(name)) {
    EXPECT_THAT(finished.err, Not(HasSubstr("heddle: task")));
  } else {
    EXPECT_THAT(finished.err, HasSubstr("heddle: task 1: declared"));
    EXPECT_THAT(finished.err, HasSubstr(", and 0 beside them"));
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, CompiledWorkload,
                         testing::Combine(testing::Values("backprop", "srad_v1", "srad_v2", "lavamd", "needle", "dwt2d",
                                                          "bfs", "mm2", "conv2d", "vecadd", "nested_pointers",
                                                          "transpose", "blackscholes", "montecarlo", "histogram",
                                                          "gaussian", "eigenvalues", "dxtc", "nn"),
                                          testing::Bool()),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param)) +
                                  (std::get<1>(instance.param) ? "_eager" : "");
                         });

}  // namespace
}  // namespace heddle::e2e
