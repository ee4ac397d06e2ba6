#include "cli/sim_report.h"

#include "core/result.h"

namespace heddle::cli {
namespace {

double since_begin(TimePoint at) {
  return std::chrono::duration<double>(at.time_since_epoch()).count();
}

std::optional<double> since_begin(const std::optional<TimePoint>& at) {
  return at ? std::optional(since_begin(*at)) : std::nullopt;
}

ReportJob simulated_job(const simulator::JobOutcome& outcome) {
  ReportJob job;
  job.name = outcome.name;
  job.group = outcome.line;
  job.arrived = since_begin(outcome.arrived);
  job.started = since_begin(outcome.granted);
  job.ended = since_begin(outcome.ended);
  if (outcome.runs > 0) job.turnaround = since_begin(TimePoint(outcome.turnaround)) / outcome.runs;
  job.waited = since_begin(TimePoint(outcome.waited));
  job.busy = since_begin(TimePoint(outcome.busy));
  job.runs = outcome.runs;
  job.note = outcome.refused;
  return job;
}

}  // namespace

ReportRun report_of(const simulator::Scenario& scenario, const simulator::Outcome& outcome,
                    const simulator::Timeline& timeline) {
  ReportRun run;
  run.length = since_begin(TimePoint(outcome.makespan));
  for (size_t i = 0; i < scenario.devices.size(); ++i)
    run.devices.push_back(stringf("%zu: %s", i, scenario.devices[i].model));
  for (const auto& line : scenario.jobs) run.groups.push_back({line.shape.name, line.shape.weight});
  for (const auto& job : outcome.jobs) run.jobs.push_back(simulated_job(job));
  for (const auto& stay : timeline.stays) {
    const double granted = since_begin(stay.granted);
    run.stays.push_back(
        {stay.job, stay.device.value, granted, since_begin(stay.ended), granted - since_begin(stay.arrived), ""});
  }
  for (const auto& use : timeline.uses)
    run.uses.push_back({use.job, use.device.value, since_begin(use.begin), since_begin(use.end), 1});
  return run;
}

}  // namespace heddle::cli
