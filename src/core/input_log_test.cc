#include "core/input_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace heddle {
namespace {

TEST(InputLogFile, AppendsLinesForItsOwnerAlone) {
  const std::string path = testing::TempDir() + "inputs-" + std::to_string(::getpid());
  for (const char* line : {"first", "second"}) {
    auto log = InputLogFile::open(path, [](const Error& error) { ADD_FAILURE() << error.text; });
    ASSERT_TRUE(log) << log.error().text;
    (*log)->write(line);
  }
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "first\nsecond\n");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ::unlink(path.c_str());
}

TEST(InputLogFile, SaysOnceThatItCannotBeWritten) {
  EXPECT_NE(InputLogFile::open("/nowhere/log", {}).error().text.find("/nowhere/log"), std::string::npos);
  int failures = 0;
  auto log = InputLogFile::open("/dev/full", [&](const Error&) { ++failures; });
  ASSERT_TRUE(log);
  for (int i = 0; i < 3; ++i) {
    (*log)->write("line");
    (*log)->flush();
  }
  EXPECT_EQ(failures, 1);
}

}  // namespace
}  // namespace heddle
