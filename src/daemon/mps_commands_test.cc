// Commands for MPS' control daemon, with a control program that the tests bring: a script that behaves like NVIDIA's at
// its door.

#include "daemon/mps_commands.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/log.h"

namespace heddle::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr DeviceId kGpu{3};

// Foreground: the daemon, with a server of its own. Otherwise it is spoken to by one at a time; "says" holds what it
// does with its next command, once.
constexpr const char* kSpokenTo = R"(#!/bin/bash
cd "$CUDA_MPS_PIPE_DIRECTORY"
if [ "$1" = -f ]; then
  trap 'kill $server; exit 0' TERM
  bash -c 'exec -a nvidia-cuda-mps-server sleep 60' & server=$!
  echo $server > server
  touch control
  wait
fi
echo $$ >> programs
exec 9> door
flock -n 9 || { echo "Cannot send command to MPS control daemon process"; exit 1; }
touch spoken-to
while read -r line; do
  says=$(cat says 2> /dev/null); rm -f says
  case "$says" in
    ends) exit 1 ;;
    complains) echo "$line" >> commands; echo "no such client"; echo 201 ;;
    nothing) exec sleep 60 9>&- ;;
    late) sleep 0.3 9>&-; echo "$line" >> commands; echo 0 ;;
    *) echo "$line" >> commands; echo 0 ;;
  esac
done
)";

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

struct MpsCommandsTest : ::testing::Test {
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as in heddled: a control program may be gone when it is written to
    char name[] = "/tmp/heddle-mps-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name));
    directory = name;
    std::ofstream(directory + "/control-program") << kSpokenTo;
    ::chmod((directory + "/control-program").c_str(), 0755);
    mps.emplace(Mps::Options{directory + "/control-program", directory, -1});
    ASSERT_TRUE(mps->start(kGpu, "GPU-a"));
    loop = std::move(*EventLoop::create(clock));
    commands.emplace(*loop, clock, *mps, logger("test"));
    ASSERT_TRUE(run([&] { return !mps->server_numbers(kGpu).empty(); }));
  }
  void TearDown() override {
    commands.reset();
    mps->end();
    std::filesystem::remove_all(directory);
  }
  std::string gpu(const std::string& file) const { return directory + "/mps-3/" + file; }
  void next_time(const char* what) const { std::ofstream(gpu("says")) << what; }
  std::string to_end(pid_t client) const {
    return "terminate_client " + lines_of(gpu("server")).at(0) + " " + std::to_string(client);
  }
  void terminate(pid_t client, Duration patience = seconds(30)) {
    EXPECT_TRUE(commands->terminate(kGpu, client, patience,
                                    [this, client](bool in_time) { (in_time ? answered : late).push_back(client); }));
  }
  template <typename Done>
  bool run(Done done, Duration limit = seconds(30)) {
    const TimePoint until = clock.now() + limit;
    while (!done() && clock.now() < until) (void)loop->run_once(milliseconds(10));
    return done();
  }
  size_t programs() const { return lines_of(gpu("programs")).size(); }

  MonotonicClock clock;
  std::string directory;
  std::optional<Mps> mps;
  std::unique_ptr<EventLoop> loop;
  std::optional<MpsCommands> commands;
  std::vector<pid_t> answered, late;
};

TEST_F(MpsCommandsTest, OneProgramGivesThemAllOneAfterTheOther) {
  commands->prepare(kGpu);
  for (pid_t client = 1; client <= 5; ++client) terminate(client);
  ASSERT_TRUE(run([&] { return answered.size() == 5; }));
  EXPECT_THAT(answered, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(lines_of(gpu("commands")), ElementsAre(to_end(1), to_end(2), to_end(3), to_end(4), to_end(5)));
  EXPECT_EQ(programs(), 1u);
}

TEST_F(MpsCommandsTest, WhatHasEndedIsReplacedAndItsCommandGivenAgain) {
  terminate(1);
  ASSERT_TRUE(run([&] { return answered.size() == 1; }));
  next_time("ends");
  terminate(2);
  terminate(3);
  ASSERT_TRUE(run([&] { return answered.size() == 3; }));
  EXPECT_THAT(answered, ElementsAre(1, 2, 3));
  EXPECT_EQ(lines_of(gpu("commands")).size(), 3u);
  EXPECT_EQ(programs(), 2u);
}

TEST_F(MpsCommandsTest, WhatIsNoNumberIsNoAnswer) {
  next_time("complains");
  terminate(1);
  ASSERT_TRUE(run([&] { return answered.size() == 1; }));
  EXPECT_EQ(programs(), 1u);
}

TEST_F(MpsCommandsTest, WhatIsForgottenIsNotAnsweredAndKeepsNobodyWaiting) {
  next_time("nothing");
  terminate(1);
  terminate(2);
  ASSERT_TRUE(run([&] { return !std::filesystem::exists(gpu("says")); }));
  commands->forget(kGpu);
  terminate(3);
  ASSERT_TRUE(run([&] { return !answered.empty(); }));
  EXPECT_THAT(answered, ElementsAre(3));
  EXPECT_THAT(late, IsEmpty());
}

TEST_F(MpsCommandsTest, WhileAnotherIsSpokenToItIsTriedAgain) {
  Result<Mps::Speaker> other = mps->speak(kGpu);
  ASSERT_TRUE(other);
  ASSERT_TRUE(run([&] { return std::filesystem::exists(gpu("spoken-to")); }));
  terminate(1);
  ASSERT_TRUE(run([&] { return programs() >= 3; }));
  EXPECT_THAT(answered, IsEmpty());
  other->commands.reset();
  other->answers.reset();
  EXPECT_TRUE(run([&] { return answered.size() == 1; }));
  EXPECT_THAT(late, IsEmpty());
}

TEST_F(MpsCommandsTest, WithoutAnAnswerInTimeTheNextOneHasAnotherProgram) {
  next_time("nothing");
  terminate(1, seconds(1));
  terminate(2);
  ASSERT_TRUE(run([&] { return answered.size() + late.size() == 2; }));
  EXPECT_THAT(late, ElementsAre(1));
  EXPECT_THAT(answered, ElementsAre(2));
}

// It would be taken for the next one's.
TEST_F(MpsCommandsTest, AnAnswerThatComesLateIsNobodys) {
  next_time("late");
  terminate(1, milliseconds(100));
  ASSERT_TRUE(run([&] { return late.size() == 1; }));
  next_time("nothing");
  terminate(2, milliseconds(600));
  ASSERT_TRUE(run([&] { return answered.size() + late.size() == 2; }));
  EXPECT_THAT(late, ElementsAre(1, 2));
}

TEST_F(MpsCommandsTest, AProgramThatCannotBeStartedIsALateAnswer) {
  std::filesystem::remove(directory + "/control-program");
  terminate(1, milliseconds(100));
  ASSERT_TRUE(run([&] { return late.size() == 1; }));
}

TEST_F(MpsCommandsTest, WithoutAServerThereIsNobodyToTell) {
  ASSERT_EQ(::kill(std::stoi(lines_of(gpu("server")).at(0)), SIGKILL), 0);
  ASSERT_TRUE(run([&] { return mps->server_numbers(kGpu).empty(); }));
  EXPECT_FALSE(commands->terminate(kGpu, 1, seconds(1), [](bool) {}));
  bool is_there = false;
  commands->ask(kGpu, seconds(30), [&](bool in_time) { is_there = in_time; });
  EXPECT_TRUE(run([&] { return is_there; }));
}

}  // namespace
}  // namespace heddle::daemon
