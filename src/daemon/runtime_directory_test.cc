#include "daemon/runtime_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace heddle::daemon {
namespace {

class RuntimeDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("HEDDLE_SOCKET");
    ::unsetenv("XDG_RUNTIME_DIR");
    ASSERT_NE(::mkdtemp(base_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(base_); }
  Places in(const std::string& directory) const { return choose_places(base_ + directory + "/control", false); }
  std::string base_ = "/tmp/heddle-places-XXXXXX";
};

TEST_F(RuntimeDirectoryTest, PlacesFollowOptionThenEnvironmentThenUser) {
  EXPECT_EQ(choose_places("", false).control, "/tmp/heddle-" + std::to_string(::getuid()) + "/control");
  ::setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  EXPECT_EQ(choose_places("", false).control, "/run/user/7/heddle/control");
  EXPECT_EQ(choose_places("", true).control, "/run/heddle/control");
  ::setenv("HEDDLE_SOCKET", "/x/y", 1);
  EXPECT_EQ(choose_places("", false).control, "/x/y");
  EXPECT_EQ(choose_places("/z", false).control, "/z");
  EXPECT_EQ(choose_places("/z", false).worker, "/z.worker");
  EXPECT_EQ(choose_places("/z", false).history, "/z.history");
}

// A program that another service starts has that service's.
TEST_F(RuntimeDirectoryTest, OnlyTheSystemsServiceHasAStateDirectory) {
  ::setenv("STATE_DIRECTORY", "/var/lib/x", 1);
  EXPECT_EQ(choose_places("/z", true).history, "/var/lib/x/history");
  EXPECT_EQ(choose_places("/z", false).history, "/z.history");
  ::unsetenv("STATE_DIRECTORY");
  EXPECT_EQ(choose_places("/z", true).history, "/z.history");
}

TEST_F(RuntimeDirectoryTest, AMissingDirectoryIsMadePrivate) {
  ASSERT_TRUE(prepare_directory(in("/new")));
  struct stat status;
  ASSERT_EQ(::stat((base_ + "/new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_TRUE(prepare_directory(in("/new")));
}

TEST_F(RuntimeDirectoryTest, OneThatIsOpenToOthersIsRefused) {
  ASSERT_EQ(::mkdir((base_ + "/open").c_str(), 0755), 0);
  EXPECT_THAT(prepare_directory(in("/open")).error().text, ::testing::HasSubstr("open to others"));
}

TEST_F(RuntimeDirectoryTest, ALinkIsNotFollowed) {
  ASSERT_EQ(::mkdir((base_ + "/real").c_str(), 0700), 0);
  ASSERT_EQ(::symlink((base_ + "/real").c_str(), (base_ + "/link").c_str()), 0);
  EXPECT_THAT(prepare_directory(in("/link")).error().text, ::testing::HasSubstr("not a directory"));
}

TEST_F(RuntimeDirectoryTest, AnotherUsersIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  ASSERT_EQ(::mkdir((base_ + "/other").c_str(), 0700), 0);
  ASSERT_EQ(::chown((base_ + "/other").c_str(), 65534, 65534), 0);
  EXPECT_THAT(prepare_directory(in("/other")).error().text, ::testing::HasSubstr("65534"));
}

}  // namespace
}  // namespace heddle::daemon
