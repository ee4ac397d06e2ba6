// MPS with a control program that the tests bring: a script that behaves like NVIDIA's at its door.

#include "daemon/mps.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace heddle::daemon {
namespace {

using ::testing::HasSubstr;

constexpr DeviceId kDevice{3};

// Makes its pipe and waits.
constexpr const char* kScript = R"(#!/bin/sh
env > "$CUDA_MPS_PIPE_DIRECTORY/environment"
touch "$CUDA_MPS_PIPE_DIRECTORY/control"
trap 'exit 0' TERM
while :; do sleep 0.05; done
)";

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct MpsTest : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/heddle-mps-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name));
    directory = name;
    program = directory + "/control-program";
    write_program(kScript);
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  void write_program(const char* text) const {
    std::ofstream(program) << text;
    ::chmod(program.c_str(), 0755);
  }
  Mps mps() const { return Mps({program, directory, -1}); }
  std::string gpu(const std::string& file) const { return directory + "/mps-3/" + file; }
  pid_t control() const { return std::atoi(read_file(gpu("control.pid")).c_str()); }

  std::string directory, program;
};

TEST_F(MpsTest, AControlDaemonStartsForOneGpuInDirectoriesOfItsOwn) {
  Mps mps = this->mps();
  const auto started = mps.start(kDevice, "GPU-a");
  ASSERT_TRUE(started) << started.error().text;
  EXPECT_TRUE(mps.serves(kDevice));
  const std::string environment = read_file(gpu("environment"));
  EXPECT_THAT(environment, HasSubstr("CUDA_VISIBLE_DEVICES=GPU-a\n"));
  EXPECT_THAT(environment, HasSubstr("CUDA_MPS_PIPE_DIRECTORY=" + directory + "/mps-3\n"));
  EXPECT_THAT(mps.environment(kDevice), ::testing::Contains("CUDA_MPS_PIPE_DIRECTORY=" + directory + "/mps-3"));
  mps.end();
}

TEST_F(MpsTest, WorkersOfOtherGpusAreKeptFromMps) {
  EXPECT_THAT(mps().environment(kDevice), ::testing::Contains("CUDA_MPS_PIPE_DIRECTORY=/nonexistent"));
}

TEST_F(MpsTest, NothingIsLeftAtTheEnd) {
  Mps mps = this->mps();
  ASSERT_TRUE(mps.start(kDevice, "GPU-a"));
  const pid_t pid = control();
  mps.end();
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_FALSE(std::filesystem::exists(directory + "/mps-3"));
}

TEST_F(MpsTest, ASuccessorTakesOverWhatRuns) {
  Mps former = mps(), latter = mps();
  ASSERT_TRUE(former.start(kDevice, "GPU-a"));
  const pid_t pid = control();
  ASSERT_TRUE(latter.start(kDevice, "GPU-a"));
  EXPECT_EQ(control(), pid);
  latter.end();
  EXPECT_TRUE(::waitpid(pid, nullptr, 0) == pid || ::kill(pid, 0) != 0);
}

// As some machines have it in NVIDIA's place.
TEST_F(MpsTest, ASuccessorTakesOverWhatAScriptStarted) {
  const std::string real = directory + "/real";
  std::filesystem::create_directory(real);
  std::filesystem::rename(program, real + "/control-program");
  write_program(("#!/bin/sh\nexec " + real + "/control-program \"$@\"\n").c_str());
  Mps former = mps(), latter = mps();
  ASSERT_TRUE(former.start(kDevice, "GPU-a"));
  const pid_t pid = control();
  ASSERT_TRUE(latter.start(kDevice, "GPU-a"));
  EXPECT_EQ(control(), pid);
  latter.end();
}

TEST_F(MpsTest, AClientIsNotTakenOver) {
  Mps mps = this->mps();
  ASSERT_EQ(::mkdir((directory + "/mps-3").c_str(), 0755), 0);
  SpawnOptions client;
  client.program = "/bin/sleep";
  client.arguments = {"60"};
  client.apart = true;
  client.environment = {"CUDA_MPS_PIPE_DIRECTORY=" + directory + "/mps-3"};
  const auto spawned = spawn(client);
  ASSERT_TRUE(spawned);
  std::ofstream(gpu("control.pid")) << spawned->pid << "\n";
  ASSERT_TRUE(mps.start(kDevice, "GPU-a"));
  EXPECT_NE(control(), spawned->pid);
  mps.end();
  kill_process(spawned->pidfd, SIGKILL);
  ::waitpid(spawned->pid, nullptr, 0);
}

TEST_F(MpsTest, ANumberThatIsAnotherProcessNowIsNotTakenOver) {
  ASSERT_EQ(::mkdir((directory + "/mps-3").c_str(), 0755), 0);
  std::ofstream(gpu("control.pid")) << ::getpid() << "\n";
  Mps mps = this->mps();
  ASSERT_TRUE(mps.start(kDevice, "GPU-a"));
  EXPECT_NE(control(), ::getpid());
  mps.end();
}

TEST_F(MpsTest, AControlDaemonThatDiedIsStartedAgain) {
  Mps mps = this->mps();
  ASSERT_TRUE(mps.start(kDevice, "GPU-a"));
  EXPECT_TRUE(mps.is_ready(kDevice));
  const pid_t first = control();
  ::kill(first, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(first), &info, WEXITED | WNOWAIT);
  EXPECT_FALSE(mps.is_ready(kDevice));
  ASSERT_TRUE(mps.launch_again(kDevice));
  EXPECT_NE(control(), first);
  mps.end();
}

TEST_F(MpsTest, ItsServersAreThoseOfItsOwnDirectory) {
  Mps mps = this->mps();
  ASSERT_TRUE(mps.start(kDevice, "GPU-a"));
  SpawnOptions server;
  server.program = directory + "/nvidia-cuda-mps-server";
  std::filesystem::create_symlink("/bin/sleep", server.program);
  server.arguments = {"60"};
  server.apart = true;
  server.environment = {"CUDA_MPS_PIPE_DIRECTORY=" + directory + "/mps-4"};
  const auto another = spawn(server);
  server.environment = {"CUDA_MPS_PIPE_DIRECTORY=" + directory + "/mps-3"};
  const auto own = spawn(server);
  ASSERT_TRUE(own && another);
  // A process that was just started has no command line for a moment.
  const auto has_words = [](const Child& child) {
    return !read_file("/proc/" + std::to_string(child.pid) + "/cmdline").empty();
  };
  for (int look = 0; look < 2000 && !(has_words(*own) && has_words(*another)); ++look) ::usleep(5000);
  const auto found = mps.servers(kDevice);
  EXPECT_EQ(found.size(), 1u);
  EXPECT_EQ(found.empty() ? 0 : found.front().pid, own->pid);
  mps.end();
  EXPECT_EQ(::waitpid(own->pid, nullptr, 0), own->pid) << "it is not left behind";
  EXPECT_EQ(::waitpid(another->pid, nullptr, WNOHANG), 0);
  kill_process(another->pidfd, SIGKILL);
  ::waitpid(another->pid, nullptr, 0);
}

TEST_F(MpsTest, ADaemonThatEndsAtOnceIsAnErrorThatSaysHow) {
  write_program("#!/bin/sh\nexit 3\n");
  Mps mps = this->mps();
  const auto started = mps.start(kDevice, "GPU-a");
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().text, HasSubstr("exit status 3"));
  EXPECT_FALSE(mps.serves(kDevice));
}

TEST_F(MpsTest, WithoutTheProgramTheErrorSaysWhatToDo) {
  Mps mps({"", directory, -1});
  const auto started = mps.start(kDevice, "GPU-a");
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().text, HasSubstr("mps = \"off\""));
}

}  // namespace
}  // namespace heddle::daemon
