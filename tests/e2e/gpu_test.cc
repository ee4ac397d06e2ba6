// The path of a GPU, from a program to the driver, on a machine without one: everything is real but the driver, which
// is the tests' own (src/device/cuda/testing).

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "steps.h"

namespace heddle::e2e {
namespace {

// Which of the driver's memory the process has a descriptor of.
std::set<ino_t> device_memory_of(pid_t process) {
  std::set<ino_t> found;
  std::error_code ignored;
  for (const auto& each : std::filesystem::directory_iterator(stringf("/proc/%d/fd", process), ignored)) {
    struct stat status {};
    const auto target = std::filesystem::read_symlink(each.path(), ignored);
    if (target.string().find("fake-gpu-") == std::string::npos) continue;
    if (::stat(each.path().c_str(), &status) == 0) found.insert(status.st_ino);
  }
  return found;
}

struct Gpu : testing::Test {
  Gpu() {
    ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1);
    node = std::make_unique<Node>(Node::gpu_config());
  }
  ~Gpu() override { ::unsetenv("HEDDLE_CUDA_LIBRARY"); }
  bool warm() const { return node->warm(); }
  std::unique_ptr<Node> node;
};

struct GpuProgram : Gpu, testing::WithParamInterface<const char*> {};

TEST_P(GpuProgram, IsRight) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  const Finished finished = node->run({workload(GetParam(), true)});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node->log();
  EXPECT_NE(finished.out.find("PASS"), std::string::npos) << finished.out;
  EXPECT_TRUE(Node::eventually([&] { return node->empty(); }));
  EXPECT_TRUE(node->stop_cleanly());
}
INSTANTIATE_TEST_SUITE_P(Workloads, GpuProgram,
                         testing::Values("backprop", "bfs", "conv2d", "histogram", "needle", "nested_pointers", "nn",
                                         "srad_v1", "transpose", "vecadd"),
                         [](const auto& instance) { return std::string(instance.param); });

// Its arrays in memory of the keeper's, copied to where the driver's texture objects read.
TEST_F(Gpu, ReadsTexturesAndWritesSurfaces) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  const Finished finished = node->run({HEDDLE_E2E_PROGRAMS "/textures"});
  EXPECT_EQ(finished.out, "textures: PASS\n") << finished.err << node->log();
  EXPECT_TRUE(Node::eventually([&] { return node->empty(); })) << node->ask({{"command", "ps"}});
}

// By itself it is the device's there.
TEST_F(Gpu, HasManagedMemoryWhileKernelsRun) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  // The driver for tests has no host memory for kernels.
  const Finished finished = node->run({HEDDLE_E2E_PROGRAMS "/managed", "-more_than_fits", kManagedLeftOut});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node->log();
  EXPECT_NE(finished.out.find("concurrentManagedAccess 0"), std::string::npos) << finished.out;
  EXPECT_TRUE(Node::eventually([&] { return node->empty(); })) << node->ask({{"command", "ps"}});
}

// 16 KiB of stack for each of its 8,192 threads.
TEST_F(Gpu, WhatItsDriverTakesCountsAsTheProgramsMemory) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  const Finished small = node->heddle({"run", "--mem", "64M", "--", HEDDLE_E2E_PROGRAMS "/limits"});
  EXPECT_NE(small.out.find("out of memory"), std::string::npos) << small.out << small.err;
  EXPECT_NE(small.err.find("the stack of all threads (cudaLimitStackSize) takes 120 MiB"), std::string::npos)
      << small.err;
  const Finished enough = node->heddle({"run", "--mem", "192M", "--", HEDDLE_E2E_PROGRAMS "/limits"});
  EXPECT_EQ(enough.out, "limits: PASS\n") << enough.err << node->log();
  EXPECT_TRUE(Node::eventually([&] { return node->empty(); })) << node->ask({{"command", "ps"}});
}

TEST_F(Gpu, IsOneOfThePool) {
  ASSERT_TRUE(node->ready()) << node->why();
  const Json devices = node->ask({{"command", "devices"}});
  ASSERT_EQ(devices["devices"].size(), 1u) << devices;
  EXPECT_EQ(devices["devices"][0]["kind"], "cuda");
  EXPECT_EQ(devices["devices"][0]["name"], "heddle test GPU");
}

TEST_F(Gpu, IsThePoolWhereTheConfigurationNamesNoDevices) {
  node = std::make_unique<Node>("");
  ASSERT_TRUE(node->ready()) << node->why();
  const Json devices = node->ask({{"command", "devices"}});
  ASSERT_EQ(devices["devices"].size(), 1u) << devices;
  EXPECT_EQ(devices["devices"][0]["kind"], "cuda");
}

TEST_F(Gpu, IsLeftAloneWhereTheConfigurationSaysSo) {
  node = std::make_unique<Node>("[daemon]\ngpus = \"off\"\n");
  ASSERT_TRUE(node->ready()) << node->why();
  const Json devices = node->ask({{"command", "devices"}});
  ASSERT_FALSE(devices["devices"].empty());
  for (const Json& device : devices["devices"]) EXPECT_EQ(device["kind"], "software");
}

TEST_F(Gpu, ProgramsGoOnWhenItsKeeperIsKilled) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  Process running = node->spawn_run({workload("srad_v1", true), "--iterations", "60", "--check", "sample"});
  ASSERT_TRUE(Node::eventually([&] { return !node->empty(); }));
  const auto keepers = node->keeper_pids();
  ASSERT_EQ(keepers.size(), 1u);
  ::kill(keepers[0], SIGKILL);
  const Finished next = node->run({workload("vecadd", true), "--size", "64k"});
  EXPECT_EQ(next.status, 0) << next.out << next.err << node->log();
  const Finished finished = running.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node->log();
}

TEST_F(Gpu, ProgramsGoOnWhenHeddledIsKilled) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  Process running = node->spawn_run({workload("srad_v1", true), "--iterations", "60", "--check", "sample"});
  ASSERT_TRUE(Node::eventually([&] { return !node->empty(); }));
  ::kill(node->daemon_pid(), SIGKILL);
  const Finished finished = running.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node->log();
  EXPECT_TRUE(Node::eventually([&] { return node->empty(); }));
}

// Memory that a heddled before had given out: its successor cannot know that nobody touches it any more.
TEST_F(Gpu, MemoryThatWasGivenOutBeforeARestartIsNotServedAgain) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  Process running = node->spawn_run({workload("srad_v1", true), "--iterations", "60", "--check", "sample"});
  std::set<ino_t> given;
  ASSERT_TRUE(Node::eventually([&] { return !(given = device_memory_of(node->vault_pid())).empty(); }));
  ::kill(node->daemon_pid(), SIGKILL);
  const Finished finished = running.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node->log();
  ASSERT_TRUE(Node::eventually([&] { return node->empty(); }));
  // A program that has its memory from the keeper behind what would have come back.
  EXPECT_EQ(node->run({workload("vecadd", true), "--size", "64k"}).status, 0);
  const auto keepers = node->keeper_pids();
  ASSERT_EQ(keepers.size(), 1u);
  for (const ino_t kept : device_memory_of(keepers[0])) EXPECT_FALSE(given.contains(kept));
}

// Its first memory is still with the keeper when heddled dies; the next is granted by the successor.
TEST_F(Gpu, ProgramsGrowWhileHeddledIsKilledBeforeTheyHaveMemory) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  const auto keepers = node->keeper_pids();
  ASSERT_EQ(keepers.size(), 1u);
  ::kill(keepers[0], SIGSTOP);
  Process running = node->spawn_run({HEDDLE_E2E_PROGRAMS "/growing"});
  const bool granted = Node::eventually([&] { return node->log().find("gets device") != std::string::npos; });
  ::kill(node->daemon_pid(), SIGKILL);
  ::kill(keepers[0], SIGCONT);
  EXPECT_TRUE(granted) << node->log();
  const Finished finished = running.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node->log();
}

// How the program gives its memory back: it frees it, or ends by itself, or is killed.
struct GpuMemory : Gpu, testing::WithParamInterface<const char*> {
  // What is with the keeper when the program has ended and its memory has come back.
  std::set<ino_t> kept_after_a_run() {
    const auto keepers = node->keeper_pids();
    if (keepers.size() != 1) return {};
    const std::string how = GetParam();
    const Finished finished = node->run({HEDDLE_E2E_PROGRAMS "/fresh_memory", "8", how});
    EXPECT_EQ(finished.status, how == "kill" ? 128 + SIGKILL : 0) << finished.out << finished.err << node->log();
    EXPECT_NE(finished.out.find("PASS"), std::string::npos) << finished.out << finished.err;
    std::set<ino_t> kept;
    EXPECT_TRUE(Node::eventually([&] { return node->empty() && !(kept = device_memory_of(keepers[0])).empty(); }));
    return kept;
  }
};

TEST_P(GpuMemory, OfOneProgramServesTheNextAndIsZeroAgain) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  const auto first = kept_after_a_run();
  EXPECT_EQ(kept_after_a_run(), first);
}
INSTANTIATE_TEST_SUITE_P(Ends, GpuMemory, testing::Values("free", "leave", "kill"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST_F(Gpu, WhatItsKeeperKeepsAndWhatIsInUseAreNoMoreThanItsShare) {
  HEDDLE_NEEDS_WORKLOADS();
  node = std::make_unique<Node>("[[gpu]]\nmps = \"off\"\nmemory = \"12M\"\ncontext_memory = \"0\"\n");
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  const auto keepers = node->keeper_pids();
  ASSERT_EQ(keepers.size(), 1u);
  const auto kept = [&] { return device_memory_of(keepers[0]); };
  ASSERT_EQ(node->run({HEDDLE_E2E_PROGRAMS "/fresh_memory"}).status, 0) << node->log();
  ASSERT_TRUE(Node::eventually([&] { return kept().size() == 1; }));
  const auto eight = kept();
  ASSERT_EQ(node->run({HEDDLE_E2E_PROGRAMS "/fresh_memory", "6"}).status, 0) << node->log();
  // The older goes.
  EXPECT_TRUE(Node::eventually([&] { return kept().size() == 1 && kept() != eight; }));
}

// A driver of the test's own, which plays what the files beside it say.
struct PlayedGpu : Gpu {
  PlayedGpu() {
    EXPECT_NE(::mkdtemp(directory.data()), nullptr);
    const std::string driver = directory + "/libcuda-test.so";
    std::filesystem::create_symlink(HEDDLE_TEST_DRIVER, driver);
    ::setenv("HEDDLE_CUDA_LIBRARY", driver.c_str(), 1);
  }
  ~PlayedGpu() override {
    node.reset();
    std::filesystem::remove_all(directory);
  }
  void play(const std::string& what, const std::string& value) const {
    std::ofstream(directory + "/libcuda-test.so." + what) << value;
  }

  std::string directory = testing::TempDir() + "/heddle-driver-XXXXXX";
};

// A GPU under an MPS whose control program, brought by the test, never comes back from taking a client off: as NVIDIA's
// after a fault, while the client is there (driver 580.159).
struct StuckMps : Gpu {
  StuckMps() {
    EXPECT_NE(::mkdtemp(directory.data()), nullptr);
    const std::string control = directory + "/nvidia-cuda-mps-control";
    std::ofstream(control) << "#!/bin/sh\n"
                              "if [ \"$1\" = -f ]; then\n"
                              "  touch \"$CUDA_MPS_PIPE_DIRECTORY/control\"\n"
                              "  trap 'exit 0' TERM\n"
                              "  while :; do sleep 0.05; done\n"
                              "fi\n"
                              "read -r line\n"
                              "[ \"$line\" = get_server_list ] && echo 4711 && exit 0\n"
                              "exec sleep 60\n";
    std::filesystem::permissions(control, std::filesystem::perms::owner_all);
    ::setenv("PATH", (directory + ":" + path).c_str(), 1);
    std::string config = Node::gpu_config();
    config.replace(config.find("off"), 3, "on");
    node = std::make_unique<Node>(config);
  }
  ~StuckMps() override {
    node.reset();
    ::setenv("PATH", path.c_str(), 1);
    std::filesystem::remove_all(directory);
  }
  const std::string path = std::getenv("PATH");
  std::string directory = "/tmp/heddle-stuck-mps-XXXXXX";
};

TEST_F(StuckMps, AFaultsWorkersEndAndTheGpuServesOn) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  const Finished faulty = node->run({HEDDLE_E2E_PROGRAMS "/limits", "overflow"});
  EXPECT_NE(faulty.out.find("overflow is cudaError"), std::string::npos) << faulty.out << faulty.err;
  EXPECT_TRUE(Node::eventually([&] { return node->empty(); })) << node->ask({{"command", "ps"}});
  const Finished next = node->run({workload("vecadd", true), "--size", "64k"});
  EXPECT_EQ(next.status, 0) << next.out << next.err << node->log();
}

// A GPU of which the test says what it has left, whoever uses the rest.
struct SharedGpu : PlayedGpu {
  SharedGpu() { node = std::make_unique<Node>(Node::gpu_config()); }
  void leave(uint64_t bytes) const { play("free", std::to_string(bytes)); }
  uint64_t outside() const { return node->ask({{"command", "devices"}})["devices"][0].value("outside", 0ul); }
};

TEST_F(SharedGpu, MemoryThatOthersUseIsNotPromised) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  EXPECT_EQ(outside(), 0u);

  leave(16 * kMiB);
  ASSERT_TRUE(Node::eventually([&] { return outside() == 240 * kMiB; })) << outside();
  Process waiting = node->spawn_run({workload("vecadd", true), "--size", "4m"});
  EXPECT_TRUE(Node::eventually([&] {
    const Json ps = node->ask({{"command", "ps"}});
    return ps.dump().find("240 MiB are used by processes outside of heddled") != std::string::npos;
  })) << node->ask({{"command", "ps"}});

  leave(512 * kMiB);
  const Finished finished = waiting.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node->log();
  EXPECT_TRUE(Node::eventually([&] { return outside() == 0; }));
}

TEST_F(SharedGpu, AHeddledThatIsKilledComesBackToAFullGpu) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  Process running = node->spawn_run({workload("srad_v1", true), "--iterations", "60", "--check", "sample"});
  ASSERT_TRUE(Node::eventually([&] { return !node->empty(); }));
  leave(2 * kMiB);
  ::kill(node->daemon_pid(), SIGKILL);
  const Finished finished = running.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node->log();
}

// Two GPUs, and under this policy each of a program's devices is one of them.
struct TwoGpus : PlayedGpu {
  void start(const std::string& gpus, const std::string& more = "") {
    play("gpus", gpus);
    node = std::make_unique<Node>(more + Node::gpu_config(), "sa");
    ASSERT_TRUE(node->ready() && warm()) << node->why() << node->log();
  }
  uint64_t keeper_copies() const {
    uint64_t sum = 0;
    const Json answer = node->ask({{"command", "devices"}});
    for (const Json& device : answer["devices"]) sum += device.value("keeper_copies", uint64_t{0});
    return sum;
  }
  void run_peer_copy() const {
    const Finished finished = node->run({HEDDLE_E2E_PROGRAMS "/peer_copy"});
    EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node->log();
    EXPECT_NE(finished.out.find("PASS"), std::string::npos) << finished.out;
  }
};

TEST_F(TwoGpus, AKeeperCopiesBetweenThem) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_NO_FATAL_FAILURE(start("2"));
  run_peer_copy();
  EXPECT_EQ(keeper_copies(), 4u) << "of the program's copies so many are large: three linear ones and a box";
}

// Keepers stand still from before a step's copies until the first device's worker is dead: the first of the copies is
// under way by then, or is asked for meanwhile.
TEST_F(TwoGpus, AKeeperCopiesBesideWorkThatIsRunAgain) {
  HEDDLE_NEEDS_PROGRAM("copies_beside");
  ASSERT_NO_FATAL_FAILURE(start("2", "[durability]\nlevel = 'full'\n"));
  Steps steps(*node);
  const std::string wanted = steps.undisturbed("copies_beside");
  const uint64_t copies = keeper_copies();
  EXPECT_GT(copies, 0u);
  Process job = steps.spawn("copies_beside");
  pid_t last = 0;
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_TRUE(steps.begins(job, step)) << job.out() << job.err() << node->log();
    const std::vector<pid_t> keepers = node->keeper_pids();
    for (const pid_t keeper : keepers) ::kill(keeper, SIGSTOP);
    steps.go(step);
    last = node->kill_at_work(last, 0);
    for (const pid_t keeper : keepers) ::kill(keeper, SIGCONT);
    ASSERT_GT(last, 1) << step << job.out() << node->ask({{"command", "ps"}}) << node->log();
  }
  const Finished finished = job.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node->log();
  EXPECT_EQ(finished.out, wanted) << finished.err << node->log();
  // Beside a kernel of more than 100 ms the program copies: on a busy machine some are as long.
  EXPECT_GT(keeper_copies(), copies);
}

// The kernel beside is in the middle when the copies of a step have been made, and its worker dies then.
TEST_F(TwoGpus, WhatAKeeperHasCopiedIsNotUndone) {
  HEDDLE_NEEDS_PROGRAM("copies_beside");
  ASSERT_NO_FATAL_FAILURE(start("2", "[durability]\nlevel = 'full'\n"));
  Steps steps(*node, {"1", "10000"}, 2);
  const std::string wanted = steps.undisturbed("copies_beside");
  Process job = steps.spawn("copies_beside");
  steps.go(1);
  ASSERT_TRUE(steps.begins(job, 2)) << job.out() << job.err() << node->log();
  ASSERT_GT(node->kill_at_work(0, 0), 1) << job.out() << node->ask({{"command", "ps"}}) << node->log();
  steps.go(2);
  const Finished finished = job.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node->log();
  EXPECT_EQ(finished.out, wanted) << finished.err << node->log();
}

TEST_F(TwoGpus, TheProgramCopiesBetweenThemWhereTheyDoNotReachEachOther) {
  HEDDLE_NEEDS_WORKLOADS();
  ASSERT_NO_FATAL_FAILURE(start("2 apart"));
  run_peer_copy();
  EXPECT_EQ(keeper_copies(), 0u);
}

}  // namespace
}  // namespace heddle::e2e
