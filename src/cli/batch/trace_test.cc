#include "cli/batch/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace heddle::cli {
namespace {

TEST(Trace, IsWrittenWhateverBytesAJobsNameHas) {
  BatchResult result;
  result.jobs.emplace_back();
  result.jobs[0].job.name = "caf\xe9";
  result.jobs[0].heddle_job = 7;
  TraceEvent granted, ended;
  granted.kind = "task_granted";
  ended.kind = "task_ended";
  granted.job = ended.job = 7;
  ended.time = granted.time + std::chrono::milliseconds(2);
  const auto path = std::filesystem::temp_directory_path() / ("heddle-trace-test-" + std::to_string(::getpid()));
  ASSERT_TRUE(write_perfetto(path, result, {granted, ended}, {"device 0"}, TimePoint{}));
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  const auto trace = parse_json(text);
  ASSERT_TRUE(trace) << text;
  EXPECT_EQ(trace->at("traceEvents")[1]["name"], "caf\xef\xbf\xbd");
  EXPECT_EQ(trace->at("traceEvents")[1]["dur"], 2000);
}

}  // namespace
}  // namespace heddle::cli
