// Programs that allocate and free in a loop: they keep what they freed while nobody waits for it, and only so long.

#include <gtest/gtest.h>
#include <signal.h>

#include "node.h"

namespace heddle::e2e {
namespace {

Arguments loop(int iterations, int mebibytes) {
  return {HEDDLE_E2E_PROGRAMS "/memory_loop", std::to_string(iterations), std::to_string(mebibytes)};
}

std::string one_device(const std::string& more = "") {
  return "[daemon]\nwarm_workers = 1\n" + more +
         "\n[[device]]\npreset = 'P100'\ncount = 1\nmemory = '64M'\nslowdown = 0\ncopy_slowdown = 0\n";
}

// Events of the kind since the node began.
size_t events(Node& node, const std::string& kind) {
  size_t count = 0;
  for (uint64_t since = 0;;) {
    const Json answer = node.ask({{"command", "trace"}, {"since", since}});
    for (const Json& event : answer.value("events", Json::array())) count += event.value("kind", "") == kind;
    if (answer.value("next", since) == since) return count;
    since = answer["next"];
  }
}

size_t tasks(Node& node) {
  return events(node, "task_arrived");
}

TEST(Loops, ALoopIsNoMoreTasksThanTheProgramWasSilentBetween) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(one_device());
  ASSERT_TRUE(node.ready()) << node.why();
  const Finished finished = node.run(loop(300, 8));
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  // A machine that is busy may keep the program from running for longer than its worker waits.
  EXPECT_LT(tasks(node), 100u);
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
}

// Managed memory that was freed is taken again as it is, and is zero all the same.
TEST(Loops, ALoopOfManagedMemoryAsksForItOnce) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(one_device("managed_memory = \"device\"\n"));
  ASSERT_TRUE(node.ready()) << node.why();
  constexpr size_t kIterations = 200;
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/memory_loop", std::to_string(kIterations), "8", "managed"});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  EXPECT_LT(tasks(node) + events(node, "extended"), kIterations / 2) << "more than one request in two iterations";
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
}

std::string with_segments(int limit, const std::string& memory) {
  return "[daemon]\nwarm_workers = 1\n[[device]]\npreset = 'P100'\ncount = 1\nmemory = '" + memory +
         "'\nslowdown = 0\ncopy_slowdown = 0\n[limits]\nsegments_per_session = " + std::to_string(limit) + "\n";
}

TEST(ManyBuffers, ShareSegmentsAsTheirNumberNearsTheLimit) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(with_segments(32, "1G"));
  ASSERT_TRUE(node.ready()) << node.why();
  for (const char* kibibytes : {"1024", "300", "1536"}) {
    const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/many_buffers", "400", kibibytes});
    EXPECT_EQ(finished.status, 0) << kibibytes << finished.out << finished.err << node.log();
  }
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
}

TEST(ManyBuffers, MayBeFarMoreThanSegments) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(with_segments(4096, "30G"));  // the limit's default
  ASSERT_TRUE(node.ready()) << node.why();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/many_buffers", "20000", "1024"});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
}

TEST(ManyBuffers, BeyondTheLimitCudaMallocSaysSo) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(with_segments(8, "4G"));
  ASSERT_TRUE(node.ready()) << node.why();
  // Of 195 MiB each: every one owns its segment. A first small one has another.
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/many_buffers", "12", "200000"});
  EXPECT_EQ(finished.status, 3) << finished.out << finished.err << node.log();
  EXPECT_EQ(finished.out, "refused cudaErrorMemoryAllocation after 7\n");
  EXPECT_NE(finished.err.find("limits.segments_per_session (8)"), std::string::npos) << finished.err;
}

// Each holds more than half of the device: every iteration of one has what the other had idle.
TEST(Loops, LoopsThatDoNotFitTogetherTakeTurns) {
  HEDDLE_NEEDS_WORKLOADS();
  for (const char* policy : {"mgb-warps", "mgb-sm", "schedgpu"}) {
    Node node(one_device(), policy);
    ASSERT_TRUE(node.ready()) << node.why();
    std::vector<Process> loops;
    for (int n = 0; n < 3; ++n) loops.push_back(node.spawn_run(loop(20, 40)));
    for (Process& process : loops) {
      const Finished finished = process.wait();
      EXPECT_EQ(finished.status, 0) << policy << finished.out << finished.err << node.log();
    }
    EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << policy;
  }
}

TEST(Loops, UnderSaTheNextJobBeginsWhenTheLoopIsOver) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(one_device(), "sa");
  ASSERT_TRUE(node.ready()) << node.why();
  Process first = node.spawn_run(loop(50, 40)), second = node.spawn_run(loop(50, 40));
  EXPECT_EQ(first.wait().status, 0);
  EXPECT_EQ(second.wait().status, 0) << node.log();
}

TEST(Loops, WhatASilentProgramHasFreedComesBack) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(one_device(), "cg:2");
  ASSERT_TRUE(node.ready()) << node.why();
  // A pipe of sh keeps the first one's standard input open.
  Process resting = node.spawn_run({"sh", "-c", "sleep 600 | exec " HEDDLE_E2E_PROGRAMS "/memory_loop 3 40 rest"});
  ASSERT_TRUE(Node::eventually([&] { return tasks(node) > 0; }));
  ASSERT_TRUE(Node::eventually([&] {
    const Json devices = node.ask({{"command", "devices"}});
    return devices["devices"][0]["used"] == 0;
  })) << "what a silent program freed comes back";
  EXPECT_EQ(node.run(loop(3, 40)).status, 0) << node.log();
  resting.signal(SIGTERM);
}

}  // namespace
}  // namespace heddle::e2e
