#include "cli/batch/batch_result.h"

#include <gtest/gtest.h>

#include "cli/batch/trace.h"

namespace heddle::cli {
namespace {

using std::chrono::seconds;

BatchResult two_done_one_crashed() {
  BatchResult result{"mgb-warps", "auto", 3, seconds(30), {}};
  for (uint64_t n = 1; n <= 3; ++n) {
    JobResult job;
    job.job.name = "job-" + std::to_string(n);
    job.heddle_job = n;
    job.finished = true;
    job.ended = seconds(10 * n);
    job.exit_status = n == 3 ? 139 : 0;
    result.jobs.push_back(job);
  }
  return result;
}

TEST(Summarise, CountsOnlyWhatFinishedRight) {
  const auto summary = summarise(two_done_one_crashed(), {});
  EXPECT_EQ(summary.completed, 2);
  EXPECT_EQ(summary.crashed, 1);
  EXPECT_DOUBLE_EQ(summary.throughput_per_minute, 4);
  EXPECT_EQ(summary.mean_turnaround, Duration(seconds(15)));
  EXPECT_FALSE(summary.kernel_slowdown);
}

TEST(Summarise, KernelSlowdownIsTheMeanOverJobsWithABaseline) {
  auto result = two_done_one_crashed();
  result.jobs[0].kernel_ns = 110;
  result.jobs[1].kernel_ns = 230;
  result.jobs[2].kernel_ns = 999;  // crashed: does not count
  const auto summary = summarise(result, {{"job-1", 100}, {"job-2", 200}, {"job-3", 1}});
  ASSERT_TRUE(summary.kernel_slowdown);
  EXPECT_NEAR(*summary.kernel_slowdown, (0.10 + 0.15) / 2, 1e-9);
}

TEST(AddTrace, TakesTheFirstRequestAndGrantAndSumsTasks) {
  auto result = two_done_one_crashed();
  const TimePoint begin(seconds(100));
  std::vector<TraceEvent> events(5);
  events[0] = {.time = begin + seconds(1), .kind = "task_arrived", .job = 1, .task = 7};
  events[1] = {.time = begin + seconds(2), .kind = "task_granted", .job = 1, .task = 7};
  events[2] = {.time = begin + seconds(3), .kind = "task_ended", .job = 1, .task = 7, .launches = 5, .kernel_ns = 50};
  events[3] = {.time = begin + seconds(4), .kind = "task_granted", .job = 1, .task = 8};
  events[4] = {.time = begin + seconds(5), .kind = "task_ended", .job = 1, .task = 8, .launches = 1, .kernel_ns = 10};
  add_trace(result, events, begin);
  EXPECT_EQ(result.jobs[0].asked, Duration(seconds(1)));
  EXPECT_EQ(result.jobs[0].granted, Duration(seconds(2)));
  EXPECT_EQ(result.jobs[0].launches, 6u);
  EXPECT_EQ(result.jobs[0].kernel_ns, 60u);
}

}  // namespace
}  // namespace heddle::cli
