#include "protocol/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "protocol/socket_path.h"

namespace heddle::protocol {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kStranger = 65534;

class Trust : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(base_.data()), nullptr);
    ASSERT_EQ(::chmod(base_.c_str(), 0755), 0);
  }
  void TearDown() override {
    if (stranger_ > 1) {
      ::kill(stranger_, SIGKILL);
      ::waitpid(stranger_, nullptr, 0);
    }
    std::filesystem::remove_all(base_);
  }

  // A process of another user that listens at a socket in a directory of its own. Only root can make one.
  std::string stranger_listens() {
    const std::string directory = base_ + "/his", path = directory + "/control";
    EXPECT_EQ(::mkdir(directory.c_str(), 0755), 0);
    EXPECT_EQ(::chown(directory.c_str(), kStranger, kStranger), 0);
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    stranger_ = ::fork();
    if (stranger_ == 0) {
      if (::setgid(kStranger) != 0 || ::setuid(kStranger) != 0) ::_exit(1);
      const auto listener = listen_at(path, 0666);
      if (!listener || ::write(ready[1], "r", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char word = 0;
    EXPECT_EQ(::read(ready[0], &word, 1), 1) << "the stranger does not listen";
    ::close(ready[0]);
    return path;
  }

  std::string base_ = "/tmp/heddle-trust-XXXXXX";
  pid_t stranger_ = 0;
};

TEST_F(Trust, TheOwnUsersHeddledIsTrusted) {
  const auto listener = listen_at(base_ + "/control", 0600);
  ASSERT_TRUE(listener);
  EXPECT_TRUE(connect_to_heddled(base_ + "/control"));
}

TEST_F(Trust, AStrangersHeddledIsNot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const std::string path = stranger_listens();
  ASSERT_TRUE(connect_to(path)) << "the test is of no use if nobody listens";
  const auto connected = connect_to_heddled(path);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, ErrorCode::kPermission);
  EXPECT_THAT(connected.error().text, HasSubstr("runs as user 65534"));
}

// A program of a user that trusts root's: the other way around.
TEST_F(Trust, RootsHeddledIsTrustedByEverybody) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const auto listener = listen_at(base_ + "/control", 0666);
  ASSERT_TRUE(listener);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(kStranger) != 0 || ::setuid(kStranger) != 0) ::_exit(2);
    ::_exit(connect_to_heddled(base_ + "/control") ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Trust, ADirectoryOfTheRightNameThatSomebodyElseMadeIsNotTheUsersOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  ::unsetenv("HEDDLE_SOCKET");
  ::setenv("XDG_RUNTIME_DIR", base_.c_str(), 1);
  ASSERT_EQ(::mkdir((base_ + "/heddle").c_str(), 0755), 0);
  ASSERT_EQ(::chown((base_ + "/heddle").c_str(), kStranger, kStranger), 0);
  EXPECT_THAT(check_directory(base_ + "/heddle", 0077).error().text, HasSubstr("belongs to user 65534"));
}

}  // namespace
}  // namespace heddle::protocol
