#include "cli/batch/jobs_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace heddle::cli {
namespace {

struct JobsFile : testing::Test {
  Result<std::vector<BatchJob>> read(const std::string& text) {
    std::ofstream(path) << text;
    return read_jobs_file(path);
  }
  void TearDown() override { ::unlink(path.c_str()); }
  std::string path = testing::TempDir() + "jobs-" + std::to_string(::getpid()) + ".toml";
};

TEST_F(JobsFile, CountMakesThatManyJobsWithNamesOfTheirOwn) {
  auto jobs =
      read("[[job]]\ncommand = ['./a', '-n', '3']\ncount = 2\nmem = '1G'\n[[job]]\nname = 'last'\ncommand = 'b x y'\n");
  ASSERT_TRUE(jobs) << jobs.error().text;
  ASSERT_EQ(jobs->size(), 3u);
  EXPECT_EQ((*jobs)[0].name, "a-1");
  EXPECT_EQ((*jobs)[1].name, "a-2");
  EXPECT_EQ((*jobs)[0].memory.value, kGiB);
  EXPECT_EQ((*jobs)[0].command[0], testing::TempDir() + "a");
  EXPECT_EQ((*jobs)[2].command, (std::vector<std::string>{"b", "x", "y"}));
}

TEST_F(JobsFile, SaysWhatJobsAskForOfADevice) {
  auto jobs = read(
      "[[job]]\ncommand = 'a'\nweight = 2\nshare = 0.25\nlimit = 0.5\napp = 'k'\nclass = 'user-facing'\n"
      "slo = '50ms'\n[[job]]\ncommand = 'b'\n");
  ASSERT_TRUE(jobs) << jobs.error().text;
  const DeviceShare& asked = (*jobs)[0].share;
  EXPECT_EQ(asked.weight, 2);
  EXPECT_EQ(asked.share, 0.25);
  EXPECT_EQ(asked.limit, 0.5);
  EXPECT_EQ(asked.app, "k");
  EXPECT_EQ(asked.job_class, "user-facing");
  EXPECT_EQ(asked.slo, std::chrono::milliseconds(50));
  EXPECT_EQ((*jobs)[1].share.job_class, "batch");
  EXPECT_FALSE((*jobs)[1].share.slo);
  EXPECT_EQ((*jobs)[1].share.weight, 1);
  EXPECT_EQ((*jobs)[1].share.share, 0);
  EXPECT_EQ((*jobs)[1].share.limit, 1);
}

TEST_F(JobsFile, ErrorsNameFileLineAndKey) {
  struct Case {
    const char *text, *line, *key;
  };
  for (const Case& wrong :
       {Case{"[[job]]\ncommand = 'a'\nmemory = 3\n", ":3:", "memory"},
        Case{"[[job]]\ncommand = 'a'\nmem = 'x'\n", ":3:", "'x'"}, Case{"[[job]]\n\nname = 'a'\n", ":1:", "command"},
        Case{"[[job]]\ncommand = [1]\n", ":2:", "command"}, Case{"[[job]]\ncommand = 'a'\ncount = 0\n", ":3:", "count"},
        Case{"[[job]]\ncommand = 'a'\nshare = 'x'\n", ":3:", "share"},
        Case{"[[job]]\ncommand = 'a'\nclass = 'urgent'\n", ":3:", "class 'urgent'"},
        Case{"[[job]]\ncommand = 'a'\nslo = '10ms'\n", ":3:", "a batch job has no requests"},
        Case{"[[job]]\ncommand = 'a'\nclass = 'user-facing'\nslo = '10'\n", ":4:", "10"},
        Case{"[[job]]\ncommand = 'a'\nclass = 'user-facing'\nslo = '2h'\n", ":4:", "a request may take"},
        Case{"[[job]]\ncommand = 'a'\nlimit = 0\n", ":3:", "limit 0: it is a part of the device, from 0.01 to 1"},
        Case{"[[job]]\ncommand = 'a'\nweight = -1\n", ":3:", "weight -1: a job's weight is at least 0.001"},
        Case{"[[job]]\nlimit = 0.3\nshare = 0.6\ncommand = 'a'\n", ":3:", "share 0.6 is above limit 0.3"},
        Case{"[[job]]\ncommand = 'a'\n[[job]]\nshare = 1.5\ncommand = 'a'\n", ":4:", "share 1.5"},
        Case{"[[job]\n", ":1:", ""},
        Case{"[[job]]\nname='n'\ncommand='a'\n[[job]]\nname='n'\ncommand='a'\n", "", "'n'"}, Case{"", "", "job"}}) {
    auto jobs = read(wrong.text);
    ASSERT_FALSE(jobs) << wrong.text;
    EXPECT_NE(jobs.error().text.find(path + wrong.line), std::string::npos) << jobs.error().text;
    EXPECT_NE(jobs.error().text.find(wrong.key), std::string::npos) << jobs.error().text;
  }
}

TEST_F(JobsFile, AFileThatIsNotThereIsAnError) {
  EXPECT_FALSE(read_jobs_file("/nonexistent/jobs.toml"));
}

}  // namespace
}  // namespace heddle::cli
