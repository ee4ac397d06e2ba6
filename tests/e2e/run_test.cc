// What a user sees of heddle run: programs' results, statuses, messages.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "node.h"

namespace heddle::e2e {
namespace {

constexpr const char* kPrograms[] = {"backprop",  "srad_v1",         "srad_v2",     "lavamd",       "needle",
                                     "episodes",  "dwt2d",           "bfs",         "mm2",          "conv2d",
                                     "vecadd",    "nested_pointers", "transpose",   "blackscholes", "montecarlo",
                                     "histogram", "gaussian",        "eigenvalues", "dxtc",         "nn"};

struct Program : testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(Program, IsRightUnderHeddle) {
  HEDDLE_NEEDS_WORKLOADS();
  const auto [name, static_runtime] = GetParam();
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  const Finished finished = node.run({workload(name, static_runtime)});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  EXPECT_NE(finished.out.find("PASS"), std::string::npos) << finished.out;
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
  EXPECT_TRUE(node.stop_cleanly());
}

INSTANTIATE_TEST_SUITE_P(Workloads, Program, testing::Combine(testing::ValuesIn(kPrograms), testing::Bool()),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param)) +
                                  (std::get<1>(instance.param) ? "_static_runtime" : "_shared_runtime");
                         });

struct Run : testing::Test {
  void SetUp() override { ASSERT_TRUE(node.ready()) << node.why(); }
  Node node;
};

TEST_F(Run, TrainsDetectsAndWritesTexts) {
  HEDDLE_NEEDS_WORKLOADS();
  for (const char* mode : {"train", "detect", "generate"}) {
    const Finished finished = node.run({workload("nn"), "--mode", mode});
    EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
    EXPECT_NE(finished.out.find("PASS"), std::string::npos) << finished.out;
  }
}

TEST_F(Run, PassesExitStatusAndOutputThrough) {
  const Finished finished = node.run({"sh", "-c", "echo out; echo err >&2; exit 37"});
  EXPECT_EQ(finished.status, 37);
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_EQ(finished.err, "err\n");
}

TEST_F(Run, EndsBySignalLikeTheProgram) {
  // Not one that a sanitizer's own handler would take.
  EXPECT_EQ(node.run({"sh", "-c", "kill -USR1 $$"}).status, 128 + SIGUSR1);
}

TEST_F(Run, VariablesKeepTheirValuesFromTaskToTaskUntilTheDeviceIsReset) {
  HEDDLE_NEEDS_WORKLOADS();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/reset"});
  EXPECT_EQ(finished.out, "PASS\n") << finished.err;
  EXPECT_EQ(finished.status, 0);
}

TEST_F(Run, PassesASignalOn) {
  const std::string ready = node.directory() + "/ready";
  Process process = node.spawn_run(
      {"sh", "-c", "trap 'echo caught; exit 5' TERM; touch \"$0\"; while :; do sleep 0.05; done", ready});
  ASSERT_TRUE(Node::eventually([&] { return ::access(ready.c_str(), F_OK) == 0; }));
  process.signal(SIGTERM);
  const Finished finished = process.wait(std::chrono::seconds(20));
  EXPECT_EQ(finished.status, 5) << finished.out << finished.err;
}

TEST_F(Run, AStaticallyLinkedProgramKnowsItsName) {
  HEDDLE_NEEDS_WORKLOADS();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/invocation_name"});
  EXPECT_EQ(finished.out, "invocation_name: 2 devices\n") << finished.err;
}

TEST_F(Run, SeparatelyCompiledDeviceCodeIsLinkedWhereItIsLoaded) {
  HEDDLE_NEEDS_WORKLOADS();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/separable"});
  EXPECT_EQ(finished.out, "PASS\n") << finished.err;
}

TEST_F(Run, DevicesCopyToEachOther) {
  HEDDLE_NEEDS_WORKLOADS();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/peer_copy"});
  EXPECT_EQ(finished.out, "PASS\n") << finished.err;
}

TEST_F(Run, PoolsGiveMemoryInStreamOrder) {
  HEDDLE_NEEDS_WORKLOADS();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/pools"});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
  EXPECT_TRUE(finished.out.starts_with("PASS")) << finished.out;
}

TEST_F(Run, GraphsRunAsTheyWereBuilt) {
  HEDDLE_NEEDS_WORKLOADS();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/graphs"});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
  EXPECT_EQ(finished.out, "captured 1, built 1: PASS\n");
}

TEST_F(Run, GraphsChooseByWhatKernelsSay) {
  HEDDLE_NEEDS_WORKLOADS();
  for (const char* program : {HEDDLE_E2E_PROGRAMS "/graph_conditions", HEDDLE_E2E_PROGRAMS "/graph_conditions_ptx"}) {
    const Finished finished = node.run({program});
    EXPECT_EQ(finished.out, "PASS\n") << program << finished.err;
  }
}

TEST_F(Run, GraphsAllocateAndFree) {
  HEDDLE_NEEDS_WORKLOADS();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/graph_memory"});
  EXPECT_EQ(finished.out, "PASS\n") << finished.err;
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

TEST_F(Run, ACooperativeGridSynchronises) {
  HEDDLE_NEEDS_WORKLOADS();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/grid_sync"});
  EXPECT_EQ(finished.out, "PASS\n") << finished.err;
  const Finished ordinary = node.run({HEDDLE_E2E_PROGRAMS "/grid_sync", "ordinary"});
  EXPECT_EQ(ordinary.out, "an ordinary launch: 0\n") << ordinary.err;
}

TEST_F(Run, LimitsLetKernelsDoMoreAndEndSomewhere) {
  HEDDLE_NEEDS_WORKLOADS();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/limits"});
  EXPECT_EQ(finished.out, "limits: PASS\n") << finished.err;
  const Finished overflow = node.run({HEDDLE_E2E_PROGRAMS "/limits", "overflow"});
  EXPECT_EQ(overflow.out, "limits: overflow is cudaErrorHardwareStackError\n") << overflow.err;
}

TEST_F(Run, TexturesAndSurfacesAreRight) {
  HEDDLE_NEEDS_WORKLOADS();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/textures"});
  EXPECT_EQ(finished.out, "textures: PASS\n") << finished.err;
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

// Programs that link cuBLAS and cuRAND. Without the toolkit's libraries they cannot be built.
#define HEDDLE_NEEDS_LIBRARIES()                              \
  if (::access(HEDDLE_E2E_PROGRAMS "/libraries", X_OK) != 0)  \
  GTEST_SKIP() << "the programs that link cuBLAS and cuRAND " \
                  "were not built"

TEST_F(Run, LibrariesServeBothKindsOfRuntime) {
  HEDDLE_NEEDS_LIBRARIES();
  for (const char* program : {HEDDLE_E2E_PROGRAMS "/libraries_smoke", HEDDLE_E2E_PROGRAMS "/libraries_smoke_shared"}) {
    const Finished finished = node.run({program});
    EXPECT_EQ(finished.out, "PASS\n") << finished.err;
  }
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

TEST_F(Run, LibrariesCalculateWhatTheyShould) {
  HEDDLE_NEEDS_LIBRARIES();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/libraries"});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
  EXPECT_NE(finished.out.find("\nPASS\n"), std::string::npos) << finished.out;
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

TEST_F(Run, EveryFamilyOfCublasCalculatesWhatItShould) {
  HEDDLE_NEEDS_LIBRARIES();
  for (const char* program : {"complex", "batched", "typed", "old"}) {
    const Finished finished = node.run({std::string(HEDDLE_E2E_PROGRAMS "/libraries_") + program});
    EXPECT_EQ(finished.status, 0) << program << ": " << finished.out << finished.err;
    EXPECT_TRUE(finished.out.ends_with("PASS\n")) << program << ": " << finished.out;
  }
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

TEST_F(Run, QuasiRandomNumbersAreEvenAndTheSameByEveryInterface) {
  HEDDLE_NEEDS_LIBRARIES();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/quasi_random"});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
  EXPECT_TRUE(finished.out.ends_with("PASS\n")) << finished.out;
}

TEST_F(Run, AForeignMatrixOfABatchFailsItsProgramAlone) {
  HEDDLE_NEEDS_LIBRARIES();
  const Finished bad = node.run({HEDDLE_E2E_PROGRAMS "/libraries_batched", "bad"});
  EXPECT_EQ(bad.out, "bad address: cudaErrorIllegalAddress\n") << bad.err;
  EXPECT_NE(bad.err.find("cublasSgetrfBatched: 64 bytes at"), std::string::npos) << bad.err;
}

TEST_F(Run, GraphsReplayCapturedLibraryCalls) {
  HEDDLE_NEEDS_LIBRARIES();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/library_graphs"});
  EXPECT_EQ(finished.out, "PASS\n") << finished.err;
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
}

TEST_F(Run, ALibraryThatIsGivenAForeignAddressFailsItsProgramAlone) {
  HEDDLE_NEEDS_LIBRARIES();
  const Finished bad = node.run({HEDDLE_E2E_PROGRAMS "/libraries", "bad"});
  EXPECT_EQ(bad.out, "bad address: cudaErrorIllegalAddress\n") << bad.err;
  EXPECT_NE(bad.err.find("cublasSgemm_v2: 256 bytes at"), std::string::npos) << bad.err;
  EXPECT_EQ(node.run({HEDDLE_E2E_PROGRAMS "/libraries_smoke"}).out, "PASS\n");
}

TEST_F(Run, AProgramThatIsNotThereIs127) {
  const Finished finished = node.run({"/nonexistent/program"});
  EXPECT_EQ(finished.status, 127);
  EXPECT_NE(finished.err.find("/nonexistent/program"), std::string::npos) << finished.err;
}

TEST_F(Run, AProgramThatAsksForMoreThanAnyDeviceHasFailsAlone) {
  HEDDLE_NEEDS_WORKLOADS();
  // 100 million floats in three arrays: 1.2 GB, on devices of 256 MB.
  const Finished greedy = node.run({workload("vecadd"), "--size", "100000000"});
  EXPECT_EQ(greedy.status, 1);
  EXPECT_NE(greedy.err.find("out of memory"), std::string::npos) << greedy.err;
  EXPECT_EQ(node.run({workload("vecadd")}).status, 0);
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
}

TEST(RunWithoutADaemon, StartsOne) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  ASSERT_EQ(node.heddle({"daemon", "stop"}).status, 0);
  const Finished finished = node.run({workload("vecadd")});
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_NE(finished.err.find("starting one"), std::string::npos) << finished.err;
}

TEST(RunWithoutADaemon, OfEightAtOnceOneStartsIt) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  ASSERT_EQ(node.heddle({"daemon", "stop"}).status, 0);
  std::vector<Process> programs;
  for (int i = 0; i < 8; ++i) programs.push_back(node.spawn_run({workload("vecadd"), "--size", "64k"}));
  int started = 0;
  for (Process& program : programs) {
    const Finished finished = program.wait();
    EXPECT_EQ(finished.status, 0) << finished.err;
    if (finished.err.find("starting one") != std::string::npos) ++started;
  }
  EXPECT_EQ(started, 1);
}

// The daemon would keep the limits of whoever started it, and serve everybody with them.
TEST(RunWithoutADaemon, WhoIsLimitedIsToldAndStartsNone) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  ASSERT_EQ(node.heddle({"daemon", "stop"}).status, 0);
  const Finished refused = node.run_under("-t 3600", {workload("vecadd")});
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(refused.err.find("processor seconds (ulimit -H -t) is 3600"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("heddle daemon start"), std::string::npos) << refused.err;
  // A soft limit is the caller's own affair.
  const Finished served = node.run_under("-S -n 256", {workload("vecadd"), "--size", "64k"});
  EXPECT_EQ(served.status, 0) << served.err;
}

TEST(DaemonStart, SaysWhatIsWrongWithAConfiguration) {
  struct Case {
    const char *config, *policy, *says;
  };
  for (const Case& wrong : {Case{"[daemon]\nagelimit = '2s'\n", "mgb-warps", "agelimit"},
                            Case{"[[device]]\npreset = 'P200'\n", "mgb-warps", "P200"},
                            Case{"[daemon\n", "mgb-warps", "heddle.toml"}, Case{"", "best", "best"}}) {
    Node node(wrong.config, wrong.policy);
    EXPECT_FALSE(node.ready());
    EXPECT_NE(node.why().find(wrong.says), std::string::npos) << node.why();
  }
}

TEST_F(Run, CommandsAnswerInJson) {
  for (const Arguments& command :
       {Arguments{"ps", "--json"}, Arguments{"devices", "--json"}, Arguments{"policies", "--json"},
        Arguments{"doctor", "--json"}, Arguments{"daemon", "status", "--json"}}) {
    const Finished finished = node.heddle(command);
    EXPECT_FALSE(Json::parse(finished.out, nullptr, false).is_discarded())
        << command[0] << finished.out << finished.err;
  }
}

}  // namespace
}  // namespace heddle::e2e
