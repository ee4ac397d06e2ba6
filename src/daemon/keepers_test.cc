// Supervision of keepers: the real heddle-keeper, over the driver that tests bring.

#include "daemon/keepers.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <optional>

namespace heddle::daemon {
namespace {

constexpr DeviceId kDevice{0};
constexpr Bytes kSize{2 * kMiB};

// A loop of its own, run until the answer is there.
class Asking {
 public:
  explicit Asking(std::string program) : keepers(*loop, std::move(program), -1) {}

  Result<Fd> allocate(DeviceId device, Bytes size = kSize) {
    std::optional<Result<Fd>> answer;
    keepers.allocate(device, "GPU-a", size, [&](Result<Fd> memory) { answer = std::move(memory); });
    run_until([&] { return answer.has_value(); });
    return std::move(*answer);
  }
  template <class Reached>
  void run_until(Reached reached) {
    while (!reached()) ASSERT_TRUE(loop->run_once(std::chrono::seconds(60)));
  }

  MonotonicClock clock;
  std::unique_ptr<EventLoop> loop = std::move(*EventLoop::create(clock));
  Keepers keepers;
};

struct KeepersTest : testing::Test {
  void SetUp() override { ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1); }
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
  std::vector<int> answered;
  for (int i = 0; i < 3; ++i) {
    keepers.allocate(kDevice, "GPU-a", kSize, [&, i](const Result<Fd>& memory) {
      EXPECT_TRUE(memory);
      answered.push_back(i);
    });
  }
  ::kill(keepers.process(kDevice), SIGKILL);
  asking.run_until([&] { return answered.size() == 3; });
  EXPECT_EQ(answered, (std::vector{0, 1, 2}));
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

TEST(KeepersWithoutAProgram, SayThatItIsNotInstalled) {
  Asking asking("");
  const auto memory = asking.allocate(kDevice);
  ASSERT_FALSE(memory);
  EXPECT_THAT(memory.error().text, testing::HasSubstr("heddle-keeper"));
}

TEST(KeepersThatEndAtOnce, AreAnErrorAfterTwoAttempts) {
  Asking asking("/bin/false");
  const auto memory = asking.allocate(kDevice);
  ASSERT_FALSE(memory);
  EXPECT_THAT(memory.error().text, testing::HasSubstr("lost twice"));
}

}  // namespace
}  // namespace heddle::daemon
