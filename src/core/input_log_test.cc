#include "core/input_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace heddle {
namespace {

const std::string kFormat = input_log_format() + "\n";

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string why_not_opened(const std::string& path) {
  const auto log = InputLogFile::open(path, {}, {});
  return log ? "opened" : log.error().text;
}

struct InputLogPath : testing::Test {
  ~InputLogPath() override { ::unlink(path.c_str()); }
  mode_t mode() const {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 0777;
  }
  const std::string path = testing::TempDir() + "input-log-" + std::to_string(::getpid());
};

TEST_F(InputLogPath, LinesAreAppendedForItsOwnerAlone) {
  for (const char* line : {"first", "second"}) {
    auto log = InputLogFile::open(path, {}, [](const Error& error) { ADD_FAILURE() << error.text; });
    ASSERT_TRUE(log) << log.error().text;
    (*log)->write(line);
  }
  EXPECT_EQ(text_of(path), kFormat + "first\n" + kFormat + "second\n");
  EXPECT_EQ(mode(), 0600u);
}

TEST_F(InputLogPath, LineThatWasNotFinishedIsTakenOut) {
  std::ofstream(path) << "whole\nhal";
  {
    auto log = InputLogFile::open(path, {}, [](const Error& error) { ADD_FAILURE() << error.text; });
    ASSERT_TRUE(log) << log.error().text;
    (*log)->write("next");
  }
  EXPECT_EQ(text_of(path), "whole\n" + kFormat + "next\n");
  std::ofstream(path) << std::string(200'000, 'x');
  ASSERT_TRUE(InputLogFile::open(path, {}, {}));
  EXPECT_EQ(text_of(path), kFormat);
}

TEST_F(InputLogPath, FileThatOthersMayReadBecomesItsOwnersAlone) {
  std::ofstream(path) << "";
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  ASSERT_TRUE(InputLogFile::open(path, {}, {}));
  EXPECT_EQ(mode(), 0600u);
}

TEST_F(InputLogPath, WhatIsNoFileOfItsOwnIsRefused) {
  EXPECT_NE(why_not_opened("/nowhere/log").find("/nowhere/log"), std::string::npos);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(why_not_opened(path).find("no ordinary file"), std::string::npos);
  ::unlink(path.c_str());
  ASSERT_EQ(::symlink("/dev/null", path.c_str()), 0);
  EXPECT_NE(why_not_opened(path).find("cannot write"), std::string::npos);
  ::unlink(path.c_str());
  const auto first = InputLogFile::open(path, {}, {});
  ASSERT_TRUE(first);
  EXPECT_NE(why_not_opened(path).find("another process writes"), std::string::npos);
}

TEST_F(InputLogPath, EndsWithALineThatSaysSoBeforeItIsLargerThanItsLimit) {
  std::vector<Error> ended;
  const auto note = [&](const Error& error) { ended.push_back(error); };
  {
    auto log = InputLogFile::open(path, Bytes{40}, note);
    ASSERT_TRUE(log);
    for (const char* line : {"first", "second", "third", "4"}) {
      (*log)->write(line);
      (*log)->flush();
    }
  }
  const std::string whole = kFormat + "first\nsecond\nthird\n0 full 40\n";
  EXPECT_EQ(text_of(path), whole);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].code, ErrorCode::kLimitExceeded);
  EXPECT_NE(ended[0].text.find("40 B of the 40 B"), std::string::npos) << ended[0].text;
  // Opened again, it has no room for anything.
  auto again = InputLogFile::open(path, Bytes{40}, note);
  ASSERT_TRUE(again);
  (*again)->write("fifth");
  (*again)->flush();
  EXPECT_EQ(text_of(path), whole);
  EXPECT_EQ(ended.size(), 2u);
}

// It is smaller than its limit then, by what did not fit.
TEST_F(InputLogPath, OneThatEndedTakesNothingBeforeItsLimitIsLarger) {
  size_t ended = 0;
  const auto write_with = [&](Bytes most, const char* line) {
    auto log = InputLogFile::open(path, most, [&](const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::kLimitExceeded);
      ++ended;
    });
    ASSERT_TRUE(log) << log.error().text;
    (*log)->write(line);
  };
  write_with(Bytes{100}, std::string(90, 'x').c_str());
  const std::string whole = kFormat + "0 full 100\n";
  ASSERT_EQ(text_of(path), whole);
  for (const uint64_t most : {100, 60}) write_with(Bytes{most}, "fits");
  EXPECT_EQ(text_of(path), whole);
  EXPECT_EQ(ended, 3u);
  write_with(Bytes{101}, "fits");
  write_with(Bytes{}, "too");
  EXPECT_EQ(text_of(path), whole + kFormat + "fits\n" + kFormat + "too\n");
  EXPECT_EQ(ended, 3u);
}

// What is flushed together is there as a whole, or not at all.
TEST_F(InputLogPath, WhatComesAtTheLimitIsLeftOutAsAWhole) {
  auto log = InputLogFile::open(path, Bytes{36}, [](const Error&) {});
  ASSERT_TRUE(log);
  for (const char* line : {"a", "b", "a line that is too long", "c"}) (*log)->write(line);
  (*log)->flush();
  EXPECT_EQ(text_of(path), kFormat + "0 full 36\n");
}

// A disk that is full: what a file may hold stands for it.
TEST_F(InputLogPath, SaysOnceThatItCannotBeWrittenAndLeavesWholeLines) {
  int failures = 0;
  auto log = InputLogFile::open(path, {}, [&](const Error&) { ++failures; });
  ASSERT_TRUE(log);
  (*log)->write("first");
  (*log)->flush();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  for (int i = 0; i < 3; ++i) {
    (*log)->write("second");
    (*log)->flush();
  }
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(text_of(path), kFormat + "first\n");
}

}  // namespace
}  // namespace heddle
