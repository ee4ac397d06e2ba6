#include "daemon/descriptions.h"

#include <nlohmann/json.hpp>

#include "daemon/usage.h"

namespace heddle::daemon {
namespace {

using Json = nlohmann::json;

const char* state_name(TaskState state) {
  if (!has_device(state)) return "waiting";
  return state == TaskState::kRunning || state == TaskState::kStopping ? "running" : "starting";
}

// What the compiled program's probes said against what came, over all devices of the session.
Json declared_by(const Session& session) {
  uint64_t tasks = 0, bytes = 0, used = 0, beside = 0, extensions = 0;
  for (const VirtualDevice& device : session.devices) {
    if (!device.ring) continue;
    const protocol::TaskTotals& totals = device.ring->header().task_totals;
    tasks += totals.tasks.load(std::memory_order_relaxed);
    bytes += totals.declared.load(std::memory_order_relaxed);
    used += totals.used.load(std::memory_order_relaxed);
    beside += totals.beside.load(std::memory_order_relaxed);
    extensions += totals.extensions.load(std::memory_order_relaxed);
  }
  return {{"tasks", tasks}, {"bytes", bytes}, {"used", used}, {"beside", beside}, {"extensions", extensions}};
}

}  // namespace

Descriptions::Descriptions(const Shared& shared, const Executor& executor, const policy::Scheduler& scheduler,
                           const Leases& leases)
    : shared_(shared), executor_(executor), leases_(leases) {
  for (policy::WaitView& wait : scheduler.waiting()) {
    const std::pair key(wait.session, wait.task);
    waits_.insert_or_assign(key, std::move(wait));
  }
}

std::string Descriptions::state_of(const DeviceState& device) {
  if (device.failed_starts == 0) return "ok";
  return stringf("workers do not start (%u times): %s", device.failed_starts, device.last_failure.c_str());
}

Json Descriptions::task(const Session& session, const VirtualDevice& device) const {
  const Task& task = *device.task;
  Json json{{"task", task.id.value},           {"virtual_device", device.index}, {"serial", task.serial},
            {"state", state_name(task.state)}, {"memory", device.live.value},    {"reason", task.reason}};
  const TimePoint until = has_device(task.state) ? task.granted : shared_.now();
  json["waited_ns"] = (until - task.arrived).count();
  if (has_device(task.state)) json["device"] = task.device.value;
  if (task.state == TaskState::kStarting) {
    const DeviceState& its = shared_.registry.devices[task.device.value];
    json["reason"] = stringf("a worker of device %lu is starting", static_cast<unsigned long>(task.device.value));
    if (its.failed_starts != 0)
      json["reason"] = stringf("device %lu: %s", static_cast<unsigned long>(task.device.value), state_of(its).c_str());
  }
  if (const pid_t process = executor_.process(device)) json["worker_pid"] = process;
  if (const auto lease = leases_.view(session, device))
    json["lease"] = {{"state", lease->state}, {"for_ns", (shared_.now() - lease->since).count()}};
  const auto wait = waits_.find({session.id, task.id});
  if (wait == waits_.end()) return json;
  json["reason"] = wait->second.why;
  json["position"] = wait->second.position;
  if (has_device(task.state)) {
    json["state"] = "waiting for memory";
    json["waited_ns"] = (shared_.now() - wait->second.since).count();
    json["reason"] = stringf("%s more: %s", to_string(wait->second.memory).c_str(), wait->second.why.c_str());
  }
  return json;
}

Json Descriptions::session(Session& session) const {
  Json tasks = Json::array();
  for (const VirtualDevice& device : session.devices) {
    if (device.task) tasks.push_back(task(session, device));
  }
  Json json{{"session", session.id.value},
            {"job", session.job.value},
            {"pid", session.pid},
            {"uid", session.uid},
            {"program", session.program},
            {"budget", session.budget.value},
            {"pinned", session.host_bytes.value},
            {"declared", declared_by(session)},
            {"connected", session.connection != nullptr},
            {"usage", usage_json(usage_of(session, shared_.now()), session.told_busy_ns)},
            {"tasks", tasks}};
  if (session.failed) json["failure"] = session.failure;
  return json;
}

}  // namespace heddle::daemon
