#include "cli/batch/batch_report.h"

#include <gtest/gtest.h>

namespace heddle::cli {
namespace {

using std::chrono::seconds;

TraceEvent event(const char* kind, int at, uint64_t job, uint64_t task, uint64_t busy_s = 0) {
  TraceEvent event;
  event.kind = kind;
  event.time = TimePoint(seconds(100 + at));
  event.job = job;
  event.task = task;
  event.device = 1;
  event.busy_ns = busy_s * 1'000'000'000;
  return event;
}

JobResult finished(uint64_t number, const char* program, const char* kind, int ended, int status = 0) {
  JobResult job;
  job.job.name = "job-" + std::to_string(number);
  job.job.command = {program};
  job.job.kind = kind;
  job.heddle_job = number;
  job.finished = true;
  job.ended = seconds(ended);
  job.exit_status = status;
  return job;
}

// The batch begins at 100 s of the clock; somebody else's job 9 uses the node, too.
TEST(BatchReport, ShowsWhatTasksWaitedForAndUsed) {
  BatchResult result{"mgb-warps", "2", 2, seconds(20), {}};
  result.jobs = {finished(1, "/bin/a", "", 10), finished(2, "/bin/a", "large", 20), finished(3, "/bin/a", "", 5, 139)};
  result.jobs[0].granted = seconds(1);
  const ReportRun run =
      report_of(result,
                {event("task_arrived", 0, 1, 7), event("task_granted", 1, 1, 7), event("task_granted", 1, 9, 8),
                 event("task_ended", 9, 1, 7, 2), event("task_ended", 9, 9, 8, 1), event("task_granted", 10, 2, 10)},
                {"device 0", "device 1"}, TimePoint(seconds(100)));
  EXPECT_EQ(run.length, 20);
  ASSERT_EQ(run.groups.size(), 2u);
  EXPECT_EQ(run.groups[0].name, "a");
  EXPECT_EQ(run.groups[1].name, "large");
  ASSERT_EQ(run.jobs.size(), 3u);
  EXPECT_EQ(run.jobs[0].started, 1);
  EXPECT_EQ(run.jobs[0].busy, 2);
  EXPECT_EQ(run.jobs[0].turnaround, 10);
  EXPECT_EQ(run.jobs[1].group, 1u);
  EXPECT_EQ(run.jobs[2].runs, 0u);
  EXPECT_EQ(run.jobs[2].note, "status 139: ");
  ASSERT_EQ(run.stays.size(), 1u);  // the other has not ended
  EXPECT_EQ(run.stays[0].begin, 1);
  EXPECT_EQ(run.stays[0].end, 9);
  EXPECT_EQ(run.stays[0].waited, 1);
  ASSERT_EQ(run.uses.size(), 1u);
  EXPECT_EQ(run.uses[0].part, 0.25);
}

}  // namespace
}  // namespace heddle::cli
