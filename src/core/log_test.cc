#include "core/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace heddle {
namespace {

class Log : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(directory_.data()), nullptr); }
  void TearDown() override {
    ASSERT_TRUE(open_log("", "info"));
    std::filesystem::remove_all(directory_);
  }
  std::string path() const { return directory_ + "/log"; }
  std::string text() const {
    std::ifstream in(path());
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
  std::string directory_ = "/tmp/heddle-log-XXXXXX";
};

TEST_F(Log, ATenantsNameForgesNoLine) {
  ASSERT_TRUE(open_log(path(), "info"));
  logger("test")->info("program {} begins", "a\n2026-01-01 error \x1b[31mall is lost");
  logger("test")->flush();
  const std::string all = text();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1);
  EXPECT_THAT(all, ::testing::HasSubstr("a\\n2026-01-01 error \\x1b[31mall is lost begins"));
}

TEST_F(Log, IsNotFilledByOneKindOfLine) {
  ASSERT_TRUE(open_log(path(), "info"));
  for (int i = 0; i < 100'000; ++i) logger("test")->warn("free: segment {} is not known", i);
  logger("test")->flush();
  EXPECT_LT(std::filesystem::file_size(path()), 1'000'000u);
}

TEST_F(Log, KeepsToItsSizeWhateverIsWritten) {
  ASSERT_TRUE(open_log(path(), "info", Bytes{64 * kKiB}));
  // Different kinds, so that no budget ends them.
  for (int i = 0; i < 20'000; ++i) {
    std::string kind = "xxxx";
    for (int k = 0, n = i % 200; k < 4; ++k, n /= 26) kind[static_cast<size_t>(k)] = static_cast<char>('a' + n % 26);
    logger("test")->warn("{} is what line {} says", kind, i);
  }
  logger("test")->flush();
  uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory_)) bytes += file.file_size();
  EXPECT_LE(bytes, 2 * 64 * kKiB + 4096);
  EXPECT_GT(bytes, 32 * kKiB);
}

}  // namespace
}  // namespace heddle
