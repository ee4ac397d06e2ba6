#include "cli/batch/batch_result.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cli/output.h"

namespace heddle::cli {
namespace {

double seconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e9;
}

// The mean of the jobs' own slowdowns, over jobs that finished right and whose time alone is known: as in papers/case
// Table IV, each kernel against itself under single assignment.
std::optional<double> mean_slowdown(const BatchResult& result, const KernelBaseline& baseline) {
  double sum = 0;
  int count = 0;
  for (const JobResult& job : result.jobs) {
    const auto alone =
        std::find_if(baseline.begin(), baseline.end(), [&](const auto& entry) { return entry.first == job.job.name; });
    if (job.crashed() || !job.finished || alone == baseline.end() || alone->second == 0) continue;
    sum += static_cast<double>(job.kernel_ns) / static_cast<double>(alone->second) - 1;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

}  // namespace

BatchSummary summarise(const BatchResult& result, const KernelBaseline& baseline) {
  BatchSummary summary;
  summary.makespan = result.makespan;
  Duration turnaround{}, wait{};
  int waited = 0;
  uint64_t kernel_ns = 0, overrun_ns = 0;
  for (const JobResult& job : result.jobs) {
    summary.crashed += job.crashed();
    kernel_ns += job.kernel_ns;
    overrun_ns += job.overrun_ns;
    if (job.granted) {
      wait += *job.granted;
      ++waited;
    }
    if (!job.finished || job.crashed()) continue;
    ++summary.completed;
    turnaround += job.ended;
  }
  if (summary.completed) summary.mean_turnaround = turnaround / summary.completed;
  if (waited) summary.mean_wait = wait / waited;
  if (result.makespan.count() > 0) summary.throughput_per_minute = summary.completed * 60 / seconds(result.makespan);
  if (kernel_ns) summary.overrun = static_cast<double>(overrun_ns) / static_cast<double>(kernel_ns);
  summary.kernel_slowdown = mean_slowdown(result, baseline);
  return summary;
}

Json to_json(const BatchResult& result, const BatchSummary& summary) {
  Json jobs = Json::array();
  for (const JobResult& job : result.jobs) {
    jobs.push_back({{"name", job.job.name},
                    {"kind", job.job.kind},
                    {"command", job.job.command},
                    {"exit_status", job.exit_status},
                    {"finished", job.finished},
                    {"started_s", seconds(job.started)},
                    {"asked_s", job.asked ? Json(seconds(*job.asked)) : Json()},
                    {"granted_s", job.granted ? Json(seconds(*job.granted)) : Json()},
                    {"ended_s", seconds(job.ended)},
                    {"launches", job.launches},
                    {"kernel_ns", job.kernel_ns},
                    {"overrun_ns", job.overrun_ns},
                    {"last_line", job.last_line}});
  }
  return {{"policy", result.policy},
          {"workers", result.workers},
          {"workers_asked", result.workers_asked},
          {"completed", summary.completed},
          {"crashed", summary.crashed},
          {"throughput_per_minute", summary.throughput_per_minute},
          {"makespan_s", seconds(summary.makespan)},
          {"mean_turnaround_s", seconds(summary.mean_turnaround)},
          {"mean_wait_s", seconds(summary.mean_wait)},
          {"kernel_slowdown", summary.kernel_slowdown ? Json(*summary.kernel_slowdown) : Json()},
          {"overrun", summary.overrun},
          {"timing_valid", summary.overrun <= kMostOverrun},
          {"jobs", jobs}};
}

KernelBaseline baseline_of(const BatchResult& result) {
  KernelBaseline baseline;
  for (const JobResult& job : result.jobs) {
    if (job.finished && !job.crashed()) baseline.emplace_back(job.job.name, job.kernel_ns);
  }
  return baseline;
}

Result<KernelBaseline> read_baseline(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail_errno(-1, "cannot read '%s'", path.c_str());
  std::ostringstream text;
  text << file.rdbuf();
  auto json = parse_json(text.str());
  if (!json || !json->contains("jobs"))
    return fail(ErrorCode::kInvalidArgument, "'%s' is not what 'heddle batch --json' writes", path.c_str());
  KernelBaseline baseline;
  for (const Json& job : json->at("jobs")) {
    if (number_of(job, "exit_status") != 0) continue;
    baseline.emplace_back(string_of(job, "name"), static_cast<uint64_t>(number_of(job, "kernel_ns")));
  }
  return baseline;
}

}  // namespace heddle::cli
