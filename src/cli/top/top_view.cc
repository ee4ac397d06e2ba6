#include "cli/top/top_view.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "cli/output.h"

namespace heddle::cli {
namespace {

const Json& list_of(const Json& object, const char* key) {
  static const Json none = Json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : none;
}

Json object_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : Json::object();
}

double busy_ns(const Json& measured) {
  return number_of(object_of(measured, "usage"), "busy_ns");
}

// How much of the time between two samples each number of heddled's list was busy.
class Shares {
 public:
  Shares(const char* list, const char* number, const TopSample& before, Duration interval)
      : number_(number), interval_(interval) {
    if (interval <= Duration::zero()) return;
    for (const Json& each : list_of(before.whole, list)) before_[count_of(each, number)] = busy_ns(each);
  }
  // Null where the earlier sample has none.
  Json of(const Json& each) const {
    const auto found = before_.find(count_of(each, number_));
    if (found == before_.end()) return {};
    return std::max(busy_ns(each) - found->second, 0.0) / static_cast<double>(interval_.count());
  }

 private:
  const char* number_;
  Duration interval_;
  std::map<uint64_t, double> before_;
};

// Zero in the first look and where another heddled answers: its clock goes on, its measures may not.
Duration between(const TopSample& before, const TopSample& now) {
  const auto pid = [](const TopSample& sample) { return count_of(object_of(sample.whole, "heddled"), "pid"); };
  if (before.whole.empty() || pid(before) != pid(now)) return Duration::zero();
  return Duration(static_cast<int64_t>(count_of(now.whole, "time_ns") - count_of(before.whole, "time_ns")));
}

Json device_row(const Json& device, Json busy) {
  return {{"device", count_of(device, "device")},      {"name", string_of(device, "name")},
          {"state", string_of(device, "state", "ok")}, {"busy", std::move(busy)},
          {"used", count_of(device, "used")},          {"free", count_of(device, "free")},
          {"memory", count_of(device, "memory")},      {"tasks", count_of(device, "tasks")},
          {"warps", count_of(device, "warps")},        {"max_warps", count_of(device, "max_warps")},
          {"policy", string_of(device, "policy")},     {"dispatch", string_of(device, "dispatch")},
          {"leases", list_of(device, "leases")},       {"revocation", device.value("revocation", Json())}};
}

// What a job's tasks come to.
class Tasks {
 public:
  void add(const Json& task) {
    const std::string state = string_of(task, "state");
    states_.insert(state.starts_with("waiting") ? "waiting" : state);
    memory_ += count_of(task, "memory");
    if (task.contains("device")) devices_.insert(count_of(task, "device"));
    if (Json lease = object_of(task, "lease"); !lease.empty() && rank(lease) > rank(lease_)) {
      lease["device"] = count_of(task, "device");
      lease_ = std::move(lease);
    }
    const Json wait = object_of(task, "wait");
    if (wait.empty() || (!wait_.is_null() && number_of(wait, "for_ns") <= number_of(wait_, "for_ns"))) return;
    wait_ = {
        {"cause", string_of(wait, "cause")}, {"why", string_of(wait, "why")}, {"for_ns", wait.value("for_ns", Json())}};
  }
  // The worst of them: who waits for the scheduler keeps the whole program waiting.
  std::string state() const {
    for (const char* const each : {"waiting", "starting", "swapping in", "resuming", "suspending", "swapping out",
                                   "suspended", "swapped", "in trial", "running"}) {
      if (states_.contains(each)) return each;
    }
    return states_.empty() ? "idle" : *states_.begin();
  }
  Json devices() const { return devices_; }
  uint64_t memory() const { return memory_; }
  const Json& lease() const { return lease_; }
  const Json& wait() const { return wait_; }

 private:
  static int rank(const Json& lease) {
    static constexpr std::string_view kBest[] = {"idle", "waits", "draining", "held"};
    if (!lease.is_object()) return -1;
    const auto found = std::find(std::begin(kBest), std::end(kBest), string_of(lease, "state"));
    return static_cast<int>(found - std::begin(kBest)) % static_cast<int>(std::size(kBest));
  }

  std::set<std::string> states_;
  std::set<uint64_t> devices_;
  uint64_t memory_ = 0;
  Json lease_, wait_;
};

Json job_row(const Json& job, const Tasks& tasks, Json busy) {
  const Json usage = object_of(job, "usage");
  return {{"job", count_of(job, "job")},
          {"user", string_of(job, "user", string_of(job, "uid"))},
          {"name", string_of(job, "name")},
          {"app", string_of(job, "app")},
          {"state", tasks.state()},
          {"devices", tasks.devices()},
          {"weight", number_of(job, "weight", 1)},
          {"share", number_of(job, "share")},
          {"limit", number_of(job, "limit", 1)},
          {"busy", std::move(busy)},
          {"busy_ns", count_of(usage, "busy_ns")},
          {"bursts", count_of(usage, "bursts")},
          {"memory", tasks.memory()},
          {"revocations", job.value("revocations", Json())},
          {"lease", tasks.lease()},
          {"wait", tasks.wait()}};
}

}  // namespace

Json top_object(const TopSample& before, const TopSample& now) {
  const Duration interval = between(before, now);
  const Shares of_devices("devices", "device", before, interval), of_jobs("jobs", "job", before, interval);
  Json devices = Json::array(), jobs = Json::array();
  for (const Json& device : list_of(now.whole, "devices")) devices.push_back(device_row(device, of_devices.of(device)));
  std::map<uint64_t, Tasks> tasks;
  for (const Json& session : list_of(now.whole, "sessions")) {
    for (const Json& task : list_of(session, "tasks")) tasks[count_of(session, "job")].add(task);
  }
  for (const Json& job : list_of(now.whole, "jobs"))
    jobs.push_back(job_row(job, tasks[count_of(job, "job")], of_jobs.of(job)));
  return {{"time_ns", count_of(now.whole, "time_ns")},
          {"interval_ns", interval.count()},
          {"heddled", object_of(now.whole, "heddled")},
          {"devices", devices},
          {"jobs", jobs},
          {"hidden_sessions", count_of(now.whole, "hidden_sessions")}};
}

}  // namespace heddle::cli
