#include "cli/batch/pool_view.h"

#include <algorithm>

#include "cli/output.h"

namespace heddle::cli {
namespace {

using policy::DeviceSharing;

const Json& array_of(const Json& object, const char* key) {
  static const Json none = Json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : none;
}

DeviceSharing sharing_of(const Json& device) {
  if (string_of(device, "dispatch", "open") != "open") return DeviceSharing::kLeased;
  return string_of(device, "sharing") == "time-sliced" ? DeviceSharing::kTimeSliced : DeviceSharing::kConcurrent;
}

void add_device(const Json& device, policy::PoolUse& use) {
  if (use.devices++ == 0) use.sharing = sharing_of(device);
  use.warps += count_of(device, "warps");
  use.max_warps += count_of(device, "max_warps");
  use.tasks += static_cast<uint32_t>(count_of(device, "tasks"));
  if (const auto usage = device.find("usage"); usage != device.end()) use.busy_ns += number_of(*usage, "busy_ns");
}

// Not where its workers do not start, or its MPS is being started anew.
bool serves(const Json& device) {
  return string_of(device, "state", "ok") == "ok";
}

// For a device, or for more memory there.
bool waits(const Json& task) {
  const std::string state = string_of(task, "state");
  return state.starts_with("waiting");
}

}  // namespace

PoolView pool_view(const Json& devices, const Json& ps, const std::set<JobId>& batch) {
  PoolView view;
  for (const Json& device : array_of(devices, "devices")) {
    if (serves(device)) add_device(device, view.use);
  }
  std::set<JobId> waiting;
  for (const Json& session : array_of(ps, "sessions")) {
    const JobId job{count_of(session, "job")};
    const Json& tasks = array_of(session, "tasks");
    if (!batch.contains(job) || tasks.empty()) continue;
    view.with_task.insert(job);
    if (std::any_of(tasks.begin(), tasks.end(), waits)) waiting.insert(job);
  }
  view.use.waiting = static_cast<uint32_t>(waiting.size());
  return view;
}

}  // namespace heddle::cli
