// Supervision of keepers: the real heddle-keeper, over the driver that tests bring.

#include "daemon/keepers.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

namespace heddle::daemon {
namespace {

constexpr DeviceId kDevice{0};
constexpr Bytes kSize{2 * kMiB};

struct KeepersTest : testing::Test {
  void SetUp() override { ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1); }
  Keepers keepers{HEDDLE_KEEPER_PROGRAM, -1};
};

TEST_F(KeepersTest, TheFirstRequestStartsOne) {
  EXPECT_EQ(keepers.process(kDevice), 0);
  const auto memory = keepers.allocate(kDevice, "GPU-a", kSize);
  ASSERT_TRUE(memory) << memory.error().text;
  EXPECT_TRUE(*memory);
  EXPECT_GT(keepers.process(kDevice), 0);
}

TEST_F(KeepersTest, OneThatWasKilledIsReplacedAtTheNextRequest) {
  ASSERT_TRUE(keepers.allocate(kDevice, "GPU-a", kSize));
  const pid_t first = keepers.process(kDevice);
  ::kill(first, SIGKILL);
  const auto memory = keepers.allocate(kDevice, "GPU-a", kSize);
  ASSERT_TRUE(memory) << memory.error().text;
  EXPECT_NE(keepers.process(kDevice), first);
}

TEST_F(KeepersTest, EachGpuHasItsOwn) {
  ASSERT_TRUE(keepers.start(DeviceId{0}, "GPU-a"));
  ASSERT_TRUE(keepers.start(DeviceId{1}, "GPU-b"));
  EXPECT_NE(keepers.process(DeviceId{0}), keepers.process(DeviceId{1}));
}

TEST_F(KeepersTest, AFullGpuIsAnErrorAndItsKeeperStays) {
  ASSERT_TRUE(keepers.start(kDevice, "GPU-a"));
  const pid_t keeper = keepers.process(kDevice);
  const auto memory = keepers.allocate(kDevice, "GPU-a", Bytes{1024 * kGiB});
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(keepers.process(kDevice), keeper);
}

TEST(KeepersWithoutAProgram, SayThatItIsNotInstalled) {
  Keepers keepers("", -1);
  const auto memory = keepers.allocate(kDevice, "GPU-a", kSize);
  ASSERT_FALSE(memory);
  EXPECT_THAT(memory.error().text, testing::HasSubstr("heddle-keeper"));
}

TEST(KeepersThatEndAtOnce, AreAnErrorAfterTwoAttempts) {
  Keepers keepers("/bin/false", -1);
  EXPECT_FALSE(keepers.allocate(kDevice, "GPU-a", kSize));
}

}  // namespace
}  // namespace heddle::daemon
