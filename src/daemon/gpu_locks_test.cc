#include "daemon/gpu_locks.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace heddle::daemon {
namespace {

class GpuLocksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/heddle-locks-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
};

TEST_F(GpuLocksTest, ASecondHeddledIsRefusedWithTheFirstOnesProcess) {
  GpuLocks first(directory_), second(directory_);
  ASSERT_TRUE(first.take("GPU-a"));
  EXPECT_TRUE(second.take("GPU-b"));
  const Status refused = second.take("GPU-a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPermission);
  EXPECT_THAT(refused.error().text,
              ::testing::HasSubstr("GPU-a is shared by another heddled, process " + std::to_string(::getpid())));
}

TEST_F(GpuLocksTest, TheLockEndsWithItsOwner) {
  { ASSERT_TRUE(GpuLocks(directory_).take("GPU-a")); }
  EXPECT_TRUE(GpuLocks(directory_).take("GPU-a"));
}

// As where /dev/shm is: a file that one user made must not keep out the next.
TEST_F(GpuLocksTest, AFileOfAnotherUserIsLockedAllTheSame) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  ::chmod(directory_.c_str(), 01777);
  { ASSERT_TRUE(GpuLocks(directory_).take("GPU-a")); }
  ASSERT_EQ(::chown((directory_ + "/heddle-GPU-a.lock").c_str(), 12345, 12345), 0);
  EXPECT_TRUE(GpuLocks(directory_).take("GPU-a"));
}

TEST_F(GpuLocksTest, WhereNothingIsLockedBothMay) {
  GpuLocks first(""), second("");
  EXPECT_TRUE(first.take("GPU-a"));
  EXPECT_TRUE(second.take("GPU-a"));
}

}  // namespace
}  // namespace heddle::daemon
