// Supervision of keepers: the real heddle-keeper, over the driver that tests bring.

#include "daemon/keepers.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/testing/keepers_loop.h"

namespace heddle::daemon {
namespace {

constexpr DeviceId kDevice{0};
constexpr Bytes kSize{2 * kMiB};

// Which memory it is; the same for every descriptor of it.
ino_t identity(const Fd& memory) {
  struct stat status {};
  EXPECT_EQ(::fstat(memory.get(), &status), 0);
  return status.st_ino;
}

class Asking : public testing::KeepersLoop {
 public:
  using KeepersLoop::KeepersLoop;

  // The answer has the same `request`.
  void request(uint64_t request, DeviceId device, Bytes size = kSize) {
    keepers.allocate({device, "GPU-a", SessionId{1}, 1, request, size});
  }
  Result<Fd> allocate(DeviceId device, Bytes size = kSize) { return KeepersLoop::allocate(device, "GPU-a", size); }
  template <class Reached>
  void run_until(Reached reached) {
    const Status reached_it = KeepersLoop::run_until(reached);
    ASSERT_TRUE(reached_it) << reached_it.error().text;
  }
};

struct KeepersTest : ::testing::Test {
  void SetUp() override { ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1); }
  bool is_mapped(const Fd& memory) const {
    const std::string inode = " " + std::to_string(identity(memory)) + " ";
    std::ifstream maps("/proc/" + std::to_string(keepers.process(kDevice)) + "/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(inode) != std::string::npos) return true;
    }
    return false;
  }
  Asking asking{HEDDLE_KEEPER_PROGRAM};
  Keepers& keepers = asking.keepers;
};

TEST_F(KeepersTest, TheFirstRequestStartsOne) {
  EXPECT_EQ(keepers.process(kDevice), 0);
  const auto memory = asking.allocate(kDevice);
  ASSERT_TRUE(memory) << memory.error().text;
  EXPECT_TRUE(*memory);
  EXPECT_GT(keepers.process(kDevice), 0);
}

TEST_F(KeepersTest, OneThatWasKilledIsReplacedAtTheNextRequest) {
  ASSERT_TRUE(asking.allocate(kDevice));
  const pid_t first = keepers.process(kDevice);
  ::kill(first, SIGKILL);
  const auto memory = asking.allocate(kDevice);
  ASSERT_TRUE(memory) << memory.error().text;
  EXPECT_NE(keepers.process(kDevice), first);
}

TEST_F(KeepersTest, WhatOneWasAskedThatIsKilledIsAskedOfItsSuccessorInOrder) {
  for (uint64_t i = 0; i < 3; ++i) asking.request(i, kDevice);
  ::kill(keepers.process(kDevice), SIGKILL);
  asking.run_until([&] { return asking.memory.size() == 3; });
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(asking.memory[i].memory);
    EXPECT_EQ(asking.memory[i].request.request, i);
  }
}

TEST_F(KeepersTest, OneThatWasKilledIsNoticedAndReapedWithoutARequest) {
  ASSERT_TRUE(asking.allocate(kDevice));
  const pid_t first = keepers.process(kDevice);
  ::kill(first, SIGKILL);
  asking.run_until([&] { return ::kill(first, 0) != 0; });
  EXPECT_EQ(keepers.process(kDevice), 0);
}

TEST_F(KeepersTest, EachGpuHasItsOwn) {
  ASSERT_TRUE(keepers.start(DeviceId{0}, "GPU-a"));
  ASSERT_TRUE(keepers.start(DeviceId{1}, "GPU-b"));
  EXPECT_NE(keepers.process(DeviceId{0}), keepers.process(DeviceId{1}));
}

TEST_F(KeepersTest, AFullGpuIsAnErrorAndItsKeeperStays) {
  ASSERT_TRUE(keepers.start(kDevice, "GPU-a"));
  const pid_t keeper = keepers.process(kDevice);
  const auto memory = asking.allocate(kDevice, Bytes{1024 * kGiB});
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(keepers.process(kDevice), keeper);
}

TEST_F(KeepersTest, SwapSpaceIsUnmappedBeforeMoreIsMade) {
  constexpr uint64_t kMapping = 5;
  keepers.allocate({kDevice, "GPU-a", SessionId{1}, 1, 1, kSize, true, kMapping});
  asking.run_until([&] { return asking.memory.size() == 1; });
  ASSERT_TRUE(asking.memory[0].memory) << asking.memory[0].memory.error().text;
  const Fd& space = *asking.memory[0].memory;
  EXPECT_TRUE(is_mapped(space));
  keepers.unmap(kDevice, kMapping);
  keepers.allocate({kDevice, "GPU-a", SessionId{1}, 1, 2, kSize});
  asking.run_until([&] { return asking.memory.size() == 2; });
  EXPECT_FALSE(is_mapped(space));
  keepers.unmap(DeviceId{1}, kMapping);  // of a GPU without a keeper
}

// Two pieces of memory, and a keeper that is stopped while it is asked.
struct KeepersCopy : KeepersTest {
  void SetUp() override {
    KeepersTest::SetUp();
    for (Fd* each : {&to, &from}) {
      auto memory = asking.allocate(kDevice);
      ASSERT_TRUE(memory) << memory.error().text;
      *each = std::move(*memory);
    }
    const auto mapped = map_shared(from, kSize);
    ASSERT_TRUE(mapped);
    std::memset(mapped->data(), 7, kSize.value);
  }
  // Its answer comes in `answers`, in the order in which they come.
  void copy(uint64_t number, uint64_t bytes = kSize.value) {
    const protocol::CopyMemory message{number, kSize.value, kSize.value, {0}, {0}, bytes, 1, 1};
    keepers.copy(kDevice, "GPU-a", message, to, from);
  }
  void run_until_answered(size_t count = 1) {
    asking.run_until([&] { return answers.size() == count; });
  }
  char last_byte() const { return static_cast<const char*>(map_shared(to, kSize)->data())[kSize.value - 1]; }

  Fd to, from;
  std::vector<CopyAnswered>& answers = asking.copies;
};

TEST_F(KeepersCopy, IsDone) {
  copy(1);
  run_until_answered();
  EXPECT_TRUE(answers[0].status) << answers[0].status.error().text;
  EXPECT_EQ(last_byte(), 7);
}

TEST_F(KeepersCopy, ThatCannotBeIsAnErrorAndTheKeeperStays) {
  const pid_t keeper = keepers.process(kDevice);
  copy(1, kSize.value + 1);
  run_until_answered();
  EXPECT_EQ(answers[0].status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(keepers.process(kDevice), keeper);
}

TEST_F(KeepersCopy, OfAKeeperThatIsKilledIsDoneByItsSuccessorWhenItHasGone) {
  const pid_t first = keepers.process(kDevice);
  ::kill(first, SIGSTOP);
  copy(1);
  copy(2);
  ::kill(first, SIGKILL);
  run_until_answered(2);
  for (const auto& [number, status] : answers) EXPECT_TRUE(status) << status.error().text;
  EXPECT_NE(::kill(first, 0), 0);
  EXPECT_EQ(last_byte(), 7);
}

TEST_F(KeepersCopy, OfTwoKeepersThatAreKilledIsAnError) {
  for (int i = 0; i < 2; ++i) {
    const pid_t keeper = keepers.process(kDevice);
    ::kill(keeper, SIGSTOP);
    if (i == 0) copy(1);
    ::kill(keeper, SIGKILL);
    asking.run_until([&] { return keepers.process(kDevice) != keeper && (i == 1 || keepers.process(kDevice) != 0); });
  }
  run_until_answered();
  EXPECT_EQ(answers[0].status.error().code, ErrorCode::kPeerDied);
}

TEST_F(KeepersCopy, ThatIsCancelledIsAnsweredAllTheSame) {
  ::kill(keepers.process(kDevice), SIGSTOP);
  copy(1);
  keepers.cancel(kDevice, 1);
  keepers.cancel(kDevice, 2);  // of none
  ::kill(keepers.process(kDevice), SIGCONT);
  run_until_answered();  // done already, or not
}

TEST_F(KeepersCopy, ThatIsCancelledWhileItsKeeperGoesIsNotRepeated) {
  const pid_t first = keepers.process(kDevice);
  ::kill(first, SIGSTOP);
  copy(1);
  ::kill(first, SIGKILL);
  asking.run_until([&] { return keepers.process(kDevice) != first; });
  keepers.cancel(kDevice, 1);
  run_until_answered();
  EXPECT_FALSE(answers[0].status);
  EXPECT_EQ(last_byte(), 0);
}

TEST(KeepersEnvironment, HasItsOwnGpuFirst) {
  EXPECT_EQ(gpu_environment("GPU-b")[0], "CUDA_VISIBLE_DEVICES=GPU-b");
  EXPECT_EQ(gpu_environment("GPU-b", {"GPU-a", "GPU-b", "GPU-c", "GPU-a"})[0],
            "CUDA_VISIBLE_DEVICES=GPU-b,GPU-a,GPU-c");
}

TEST_F(KeepersTest, MemoryThatItHasBackIsServedAgain) {
  auto memory = asking.allocate(kDevice);
  ASSERT_TRUE(memory);
  const Fd seen = std::move(*memory->duplicate());
  keepers.take_back(kDevice, std::move(*memory), kSize);
  ASSERT_TRUE(asking.loop->run_once(Duration{}));
  EXPECT_EQ(identity(*asking.allocate(kDevice)), identity(seen));
}

// What a handler changes is deposited as a whole, so nothing may be sent in its middle.
TEST_F(KeepersTest, MemoryGoesBackWhenTheHandlersHaveReturned) {
  auto memory = asking.allocate(kDevice);
  ASSERT_TRUE(memory);
  int sent = 0;
  asking.loop->set_commit([&] { ++sent; });
  keepers.take_back(kDevice, std::move(*memory), kSize);
  EXPECT_EQ(sent, 0);
  ASSERT_TRUE(asking.loop->run_once(Duration{}));
  EXPECT_EQ(sent, 2) << "the round's own, and in front of the message";
  asking.loop->set_commit({});
}

TEST_F(KeepersTest, MemoryForAKeeperThatIsGoneIsLetGo) {
  auto memory = asking.allocate(kDevice);
  ASSERT_TRUE(memory);
  const Fd seen = std::move(*memory->duplicate());
  const pid_t first = keepers.process(kDevice);
  ::kill(first, SIGKILL);
  keepers.take_back(kDevice, std::move(*memory), kSize);
  asking.run_until([&] { return ::kill(first, 0) != 0; });
  keepers.take_back(kDevice, std::move(*seen.duplicate()), kSize);
  const auto next = asking.allocate(kDevice);
  ASSERT_TRUE(next) << next.error().text;
  EXPECT_NE(identity(*next), identity(seen));
}

TEST(KeepersWithoutAProgram, SayThatItIsNotInstalled) {
  Asking asking("");
  const auto memory = asking.allocate(kDevice);
  ASSERT_FALSE(memory);
  EXPECT_THAT(memory.error().text, ::testing::HasSubstr("heddle-keeper"));
}

TEST(KeepersThatEndAtOnce, AreAnErrorAfterTwoAttempts) {
  Asking asking("/bin/false");
  const auto memory = asking.allocate(kDevice);
  ASSERT_FALSE(memory);
  EXPECT_THAT(memory.error().text, ::testing::HasSubstr("lost twice"));
}

}  // namespace
}  // namespace heddle::daemon
