#include "cli/top/top_view.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "cli/output.h"

namespace heddle::cli {
namespace {

const Json& list_of(const Json& object, const char* key) {
  static const Json none = Json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : none;
}

double busy_ns(const Json& measured) {
  const auto usage = measured.find("usage");
  return usage == measured.end() ? 0 : number_of(*usage, "busy_ns");
}

// By number, of heddled's list of devices or jobs.
std::map<uint64_t, double> busy_by(const char* number, const Json& list) {
  std::map<uint64_t, double> busy;
  for (const Json& each : list) busy[count_of(each, number)] = busy_ns(each);
  return busy;
}

// Null where the earlier sample has none.
Json share_of(double busy, const std::map<uint64_t, double>& earlier, uint64_t number, Duration interval) {
  const auto found = earlier.find(number);
  if (found == earlier.end() || interval <= Duration::zero()) return {};
  return std::max(busy - found->second, 0.0) / static_cast<double>(interval.count());
}

Json device_row(const Json& device, const Json& share) {
  return {{"device", count_of(device, "device")},
          {"name", string_of(device, "name")},
          {"busy", share},
          {"used", count_of(device, "used")},
          {"memory", count_of(device, "memory")},
          {"tasks", count_of(device, "tasks")},
          {"warps", count_of(device, "warps")},
          {"max_warps", count_of(device, "max_warps")},
          {"state", string_of(device, "state", "ok")}};
}

// What a job's tasks come to; the task that has waited longest says what the job waits for.
struct Tasks {
  size_t running = 0, waiting = 0;
  uint64_t memory = 0;
  double waited_ns = 0;
  std::string why;
  std::string between;  // the state of one that neither runs nor waits: placed, starting, stopping
  std::vector<uint64_t> devices;

  void add(const Json& task) {
    const std::string state = string_of(task, "state");
    const bool waits = state == "new" || state == "arriving" || state.starts_with("waiting");
    waiting += waits;
    running += state == "running";
    if (!waits && state != "running") between = state;
    memory += count_of(task, "memory");
    if (task.contains("device")) devices.push_back(count_of(task, "device"));
    if (!waits || number_of(task, "waited_ns") < waited_ns) return;
    waited_ns = number_of(task, "waited_ns");
    why = string_of(task, "reason");
  }
  std::string state() const {
    if (waiting > 0) return "waiting";
    return running > 0 ? "running" : between.empty() ? "idle" : between;
  }
};

std::map<uint64_t, Tasks> tasks_by_job(const Json& ps) {
  std::map<uint64_t, Tasks> jobs;
  for (const Json& session : list_of(ps, "sessions")) {
    Tasks& tasks = jobs[count_of(session, "job")];
    for (const Json& task : list_of(session, "tasks")) tasks.add(task);
  }
  return jobs;
}

Json job_row(const Json& job, Tasks tasks, const Json& share) {
  std::sort(tasks.devices.begin(), tasks.devices.end());
  tasks.devices.erase(std::unique(tasks.devices.begin(), tasks.devices.end()), tasks.devices.end());
  const Json usage = job.value("usage", Json::object());
  return {{"job", count_of(job, "job")},
          {"name", string_of(job, "name")},
          {"state", tasks.state()},
          {"devices", tasks.devices},
          {"busy", share},
          {"busy_ns", count_of(usage, "busy_ns")},
          {"bursts", count_of(usage, "bursts")},
          {"memory", tasks.memory},
          {"waited_ns", static_cast<uint64_t>(tasks.waited_ns)},
          {"why", tasks.why}};
}

std::string percent(const Json& share) {
  return share.is_number() ? stringf("%.0f%%", 100 * share.get<double>()) : "-";
}

std::string joined(const Json& numbers) {
  std::string text;
  for (const Json& number : numbers) text += (text.empty() ? "" : ",") + number.dump();
  return text.empty() ? "-" : text;
}

std::string seconds(double nanoseconds) {
  return stringf("%.1f s", nanoseconds / 1e9);
}

std::string device_table(const Json& devices) {
  Table table({"DEVICE", "NAME", "BUSY", "MEMORY", "OF", "TASKS", "WARPS", "STATE"});
  for (const Json& device : devices) {
    table.add({string_of(device, "device"), string_of(device, "name"), percent(device["busy"]),
               bytes_of(device, "used"), bytes_of(device, "memory"), string_of(device, "tasks"),
               string_of(device, "warps") + "/" + string_of(device, "max_warps"), string_of(device, "state")});
  }
  return table.text();
}

std::string job_table(const Json& jobs) {
  Table table({"JOB", "NAME", "STATE", "DEVICE", "BUSY", "MEMORY", "BUSY TIME", "BURSTS", "WAITED", "WHY"});
  for (const Json& job : jobs) {
    const bool waits = string_of(job, "state") == "waiting";
    table.add({string_of(job, "job"), string_of(job, "name"), string_of(job, "state"), joined(job["devices"]),
               percent(job["busy"]), bytes_of(job, "memory"), seconds(number_of(job, "busy_ns")),
               string_of(job, "bursts"), waits ? seconds(number_of(job, "waited_ns")) : "-", string_of(job, "why")});
  }
  return table.empty() ? "nothing runs\n" : table.text();
}

// The line's first bytes, at most `most`; no character is cut apart.
std::string beginning(const std::string& line, size_t most) {
  if (line.size() <= most) return line;
  while (most > 0 && (static_cast<unsigned char>(line[most]) & 0xc0) == 0x80) --most;
  return line.substr(0, most);
}

}  // namespace

Json top_object(const TopSample& before, const TopSample& now) {
  const Duration interval = before.at == TimePoint{} ? Duration::zero() : now.at - before.at;
  Json devices = Json::array(), jobs = Json::array();
  const auto devices_before = busy_by("device", list_of(before.devices, "devices"));
  for (const Json& device : list_of(now.devices, "devices")) {
    const Json share = share_of(busy_ns(device), devices_before, count_of(device, "device"), interval);
    devices.push_back(device_row(device, share));
  }
  const auto jobs_before = busy_by("job", list_of(before.ps, "jobs"));
  auto tasks = tasks_by_job(now.ps);
  for (const Json& job : list_of(now.ps, "jobs")) {
    const uint64_t number = count_of(job, "job");
    jobs.push_back(job_row(job, tasks[number], share_of(busy_ns(job), jobs_before, number, interval)));
  }
  return {{"time_ns", now.at.time_since_epoch().count()},
          {"interval_ns", interval.count()},
          {"devices", devices},
          {"jobs", jobs},
          {"hidden_sessions", count_of(now.ps, "hidden_sessions")}};
}

std::string top_text(const Json& object, size_t columns, size_t lines) {
  std::string text = device_table(object["devices"]) + "\n" + job_table(object["jobs"]);
  if (const uint64_t hidden = count_of(object, "hidden_sessions"); hidden > 0)
    text += stringf("and %lu sessions of other users\n", static_cast<unsigned long>(hidden));
  std::istringstream all(text);
  std::string shown, line;
  for (size_t count = 0; std::getline(all, line) && (lines == 0 || count < lines); ++count)
    shown += (columns == 0 ? line : beginning(line, columns)) + "\n";
  return shown;
}

}  // namespace heddle::cli
