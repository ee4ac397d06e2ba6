#include "cli/batch/batch_report.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace heddle::cli {
namespace {

double as_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Jobs of one kind and weight are alike; without a kind, those of one program.
std::string group_of(const BatchJob& job) {
  if (!job.kind.empty()) return job.kind;
  return job.share.app.empty() ? std::filesystem::path(job.command.at(0)).filename().string() : job.share.app;
}

size_t index_of(const BatchJob& job, std::vector<ReportGroup>& groups) {
  const double weight = job.share.weight;
  const std::string name = group_of(job) + (weight == 1 ? "" : stringf(", weight %g", weight));
  const auto found =
      std::find_if(groups.begin(), groups.end(), [&](const ReportGroup& group) { return group.name == name; });
  const auto index = static_cast<size_t>(found - groups.begin());
  if (found == groups.end()) groups.push_back({name, weight});
  return index;
}

ReportJob batched_job(const JobResult& result, size_t group) {
  ReportJob job;
  job.name = result.job.name;
  job.group = group;
  if (result.granted) job.started = as_seconds(*result.granted);
  job.waited = job.started.value_or(as_seconds(result.ended));
  if (!result.finished) return job;
  job.ended = as_seconds(result.ended);
  if (result.crashed()) {
    job.note = stringf("status %d: %s", result.exit_status, result.last_line.c_str());
  } else {
    job.runs = 1;
    job.turnaround = job.ended;
  }
  return job;
}

}  // namespace

ReportRun report_of(const BatchResult& result, const std::vector<TraceEvent>& events,
                    const std::vector<std::string>& device_names, TimePoint begin) {
  ReportRun run;
  run.length = as_seconds(result.makespan);
  run.devices = device_names;
  std::map<uint64_t, size_t> jobs;
  for (const JobResult& job : result.jobs) {
    jobs[job.heddle_job] = run.jobs.size();
    run.jobs.push_back(batched_job(job, index_of(job.job, run.groups)));
  }
  std::map<uint64_t, TimePoint> arrived;
  std::map<uint64_t, ReportStay> open;  // by task
  for (const TraceEvent& event : events) {
    const auto job = jobs.find(event.job);
    if (job == jobs.end()) continue;
    const double at = as_seconds(event.time - begin);
    if (event.kind == "task_arrived") arrived[event.task] = event.time;
    if (event.kind == "task_granted") {
      const auto came = arrived.find(event.task);
      const double waited = came == arrived.end() ? 0 : as_seconds(event.time - came->second);
      open[event.task] = {job->second, event.device, at, at, waited, event.reason};
    }
    const auto stay = open.find(event.task);
    if (event.kind != "task_ended" || stay == open.end()) continue;
    stay->second.end = at;
    run.stays.push_back(stay->second);
    const double busy = static_cast<double>(event.busy_ns) / 1e9, length = at - stay->second.begin;
    run.jobs[job->second].busy += busy;
    if (length > 0)
      run.uses.push_back({job->second, event.device, stay->second.begin, at, std::min(1.0, busy / length)});
    open.erase(stay);
  }
  return run;
}

}  // namespace heddle::cli
