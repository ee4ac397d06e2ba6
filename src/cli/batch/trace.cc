#include "cli/batch/trace.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "cli/output.h"

namespace heddle::cli {
namespace {

TraceEvent event_of(const Json& json) {
  TraceEvent event;
  event.time = TimePoint(Duration(static_cast<int64_t>(number_of(json, "time_ns"))));
  event.kind = string_of(json, "kind");
  event.job = count_of(json, "job");
  event.session = count_of(json, "session");
  event.task = count_of(json, "task");
  event.device = count_of(json, "device");
  event.memory = count_of(json, "memory");
  event.blocks = count_of(json, "blocks");
  event.threads = count_of(json, "threads");
  event.registers = count_of(json, "registers");
  event.shared = count_of(json, "shared");
  event.launches = count_of(json, "launches");
  event.kernel_ns = count_of(json, "kernel_ns");
  event.busy_ns = count_of(json, "busy_ns");
  event.overrun_ns = count_of(json, "overrun_ns");
  event.reason = string_of(json, "reason");
  return event;
}

// A task's stay on a device.
struct Slice {
  std::string name;
  TraceEvent granted;
  TraceEvent ended;
};

std::vector<Slice> slices_of(const BatchResult& result, const std::vector<TraceEvent>& events) {
  std::map<uint64_t, std::string> names;
  for (const JobResult& job : result.jobs) names[job.heddle_job] = job.job.name;
  std::map<uint64_t, Slice> open;  // by task
  std::vector<Slice> slices;
  for (const TraceEvent& event : events) {
    if (event.kind == "task_granted" && names.contains(event.job)) {
      open[event.task] = Slice{names[event.job], event, {}};
    } else if (event.kind == "task_ended") {
      const auto found = open.find(event.task);
      if (found == open.end()) continue;
      found->second.ended = event;
      slices.push_back(found->second);
      open.erase(found);
    }
  }
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.granted.time < b.granted.time; });
  return slices;
}

// Tasks that share a device overlap: each takes the first row of its device's track that is free.
std::vector<uint64_t> rows_of(const std::vector<Slice>& slices) {
  std::map<uint64_t, std::vector<TimePoint>> busy_until;
  std::vector<uint64_t> rows;
  for (const Slice& slice : slices) {
    auto& rows_until = busy_until[slice.granted.device];
    auto row =
        std::find_if(rows_until.begin(), rows_until.end(), [&](TimePoint end) { return end <= slice.granted.time; });
    if (row == rows_until.end()) row = rows_until.insert(rows_until.end(), TimePoint{});
    *row = slice.ended.time;
    rows.push_back(static_cast<uint64_t>(row - rows_until.begin()));
  }
  return rows;
}

double microseconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e3;
}

// With what a simulation of the task needs (experiments/predict).
Json details_of(const Slice& slice) {
  const TraceEvent& need = slice.granted;
  return {{"memory", to_string(Bytes{need.memory})},
          {"why", need.reason},
          {"memory_bytes", need.memory},
          {"blocks", need.blocks},
          {"threads", need.threads},
          {"registers", need.registers},
          {"shared_bytes", need.shared},
          {"launches", slice.ended.launches},
          {"kernel_ms", static_cast<double>(slice.ended.kernel_ns) / 1e6}};
}

}  // namespace

Result<uint64_t> trace_cursor(DaemonLink& link) {
  auto answer = link.request({{"command", "trace"}, {"since", nullptr}});
  if (!answer) return tl::unexpected(std::move(answer).error());
  return count_of(*answer, "next");
}

Result<std::vector<TraceEvent>> read_trace(DaemonLink& link, uint64_t cursor) {
  std::vector<TraceEvent> events;
  for (bool more = true; more;) {
    auto answer = link.request({{"command", "trace"}, {"since", cursor}});
    if (!answer) return tl::unexpected(std::move(answer).error());
    if (count_of(*answer, "first") > cursor)
      return fail(ErrorCode::kLimitExceeded,
                  "heddled keeps too few trace events for this batch: raise daemon.trace_events");
    for (const Json& event : answer->value("events", Json::array())) events.push_back(event_of(event));
    more = count_of(*answer, "next") > cursor && count_of(*answer, "next") < count_of(*answer, "end");
    cursor = count_of(*answer, "next");
  }
  return events;
}

void add_trace(BatchResult& result, const std::vector<TraceEvent>& events, TimePoint begin) {
  std::map<uint64_t, JobResult*> jobs;
  for (JobResult& job : result.jobs) jobs[job.heddle_job] = &job;
  for (const TraceEvent& event : events) {
    const auto found = jobs.find(event.job);
    if (found == jobs.end()) continue;
    JobResult& job = *found->second;
    if (event.kind == "task_arrived" && !job.asked) job.asked = event.time - begin;
    if (event.kind == "task_granted" && !job.granted) job.granted = event.time - begin;
    if (event.kind == "task_ended") {
      job.launches += event.launches;
      job.kernel_ns += event.kernel_ns;
      job.overrun_ns += event.overrun_ns;
    }
  }
}

Status write_perfetto(const std::string& path, const BatchResult& result, const std::vector<TraceEvent>& events,
                      const std::vector<std::string>& device_names, TimePoint begin) {
  Json trace = Json::array();
  for (size_t device = 0; device < device_names.size(); ++device) {
    trace.push_back(
        {{"ph", "M"}, {"name", "process_name"}, {"pid", device}, {"args", {{"name", device_names[device]}}}});
  }
  const auto slices = slices_of(result, events);
  const auto rows = rows_of(slices);
  for (size_t i = 0; i < slices.size(); ++i) {
    const Slice& slice = slices[i];
    trace.push_back({{"ph", "X"},
                     {"name", slice.name},
                     {"pid", slice.granted.device},
                     {"tid", rows[i]},
                     {"ts", microseconds(slice.granted.time - begin)},
                     {"dur", microseconds(slice.ended.time - slice.granted.time)},
                     {"args", details_of(slice)}});
  }
  std::ofstream file(path);
  file << json_text({{"traceEvents", trace}, {"displayTimeUnit", "ms"}});
  file.close();
  if (!file) return fail_errno(-1, "cannot write '%s'", path.c_str());
  return {};
}

}  // namespace heddle::cli
