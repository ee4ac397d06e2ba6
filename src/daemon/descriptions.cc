#include "daemon/descriptions.h"

#include <nlohmann/json.hpp>

#include "daemon/resumable.h"
#include "daemon/tenant.h"
#include "daemon/usage.h"

namespace heddle::daemon {
namespace {

using Json = nlohmann::json;

const char* state_name(TaskState state) {
  if (state == TaskState::kSwapped) return "swapped";
  if (!has_device(state)) return "waiting";
  if (state == TaskState::kSwappingOut) return "swapping out";
  if (state == TaskState::kSwappingIn) return "swapping in";
  if (state == TaskState::kPromoting) return "promoting";
  if (state == TaskState::kResuming) return "resuming";
  if (state == TaskState::kSuspending) return "suspending";
  if (state == TaskState::kSuspended) return "suspended";
  return state == TaskState::kRunning || state == TaskState::kStopping ? "running" : "starting";
}

const char* name_of(GivesWay why) {
  switch (why) {
    case GivesWay::kNo:
      break;
    case GivesWay::kIdle:
      return "idle";
    case GivesWay::kDeadlock:
      return "deadlock";
    case GivesWay::kPromotion:
      return "promotion";
  }
  return "";
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

// Whether it outlives its worker, as far as that lasts; and whether it would just now.
void add_revocable(Json& task, const VirtualDevice& device) {
  const std::string lasting = lasting_obstacle(device);
  task["revocable"] = lasting.empty();
  if (!lasting.empty()) task["not_revocable"] = lasting;
  if (device.apart) task["apart"] = true;
  task["drained"] = present_obstacle(device).empty();
}

void add_terminations(Json& task, const TerminationCounts& counts) {
  if (counts.done != 0) task["terminations"] = counts.done;
  if (counts.refused == 0) return;
  task["terminations_refused"] = counts.refused;
  if (!counts.why.empty()) task["not_terminated"] = counts.why;  // not where only a heddled before this one knew
}

}  // namespace

Descriptions::Descriptions(const Shared& shared, const Executor& executor, const policy::Scheduler& scheduler,
                           const Leases& leases, uid_t viewer)
    : shared_(shared),
      executor_(executor),
      leases_(leases),
      viewer_(viewer),
      waits_(shared, scheduler, leases, viewer) {}

Json Descriptions::task(const Session& session, const VirtualDevice& device) const {
  const Task& task = *device.task;
  Json json{{"task", task.id.value},           {"virtual_device", device.index}, {"serial", task.serial},
            {"state", state_name(task.state)}, {"memory", device.live.value},    {"reason", task.reason}};
  const auto& on_trial = shared_.registry.devices[task.device.value].on_trial;
  if (task.state == TaskState::kRunning && on_trial.contains({session.id, device.index})) json["state"] = "in trial";
  const Bytes on_host = bytes_on_host(session, device);
  if (on_host.value != 0) json["on_host"] = on_host.value;
  if (device.swapped > on_host) json["swapped"] = (device.swapped - on_host).value;
  if (task.promotions != 0) json["promotions"] = task.promotions;
  if (task.swaps != 0) json["swaps"] = task.swaps;
  if (task.gives_way != GivesWay::kNo) json["gives_way"] = name_of(task.gives_way);
  const TimePoint until = has_device(task.state) ? task.granted : shared_.now();
  json["waited_ns"] = (until - task.arrived).count();
  if (has_device(task.state)) json["device"] = task.device.value;
  if (const pid_t process = executor_.process(device)) json["worker_pid"] = process;
  if (task.state == TaskState::kRunning || task.state == TaskState::kSuspending) add_revocable(json, device);
  if (device.resumed.count != 0) json["resumptions"] = device.resumed.count;
  add_terminations(json, device.terminations);
  if (const auto lease = leases_.view(session, device))
    json["lease"] = {{"state", lease->state}, {"for_ns", (shared_.now() - lease->since).count()}};
  const auto wait = waits_.of(session, device);
  if (!wait) return json;
  json["wait"] = {{"cause", wait->cause}, {"why", wait->why}};
  if (wait->since) json["wait"]["for_ns"] = (shared_.now() - *wait->since).count();
  const bool in_line = wait->position != 0;
  if (in_line || task.state != TaskState::kRunning) json["reason"] = wait->why;
  if (!in_line) return json;
  json["position"] = wait->position;
  if (has_device(task.state)) {
    json["state"] = "waiting for memory";
    json["waited_ns"] = json["wait"]["for_ns"];
  }
  return json;
}

Json Descriptions::leases(DeviceId device) const {
  Json list = Json::array();
  for (const Leases::Holder& holder : leases_.holders(device)) {
    list.push_back({{"state", holder.view.state}, {"for_ns", (shared_.now() - holder.view.since).count()}});
    const Session* session = shared_.registry.find_session(holder.session);
    if (!session || (viewer_ != 0 && viewer_ != session->uid)) continue;
    list.back()["session"] = session->id.value;
    list.back()["job"] = session->job.value;
  }
  return list;
}

Json Descriptions::revocation(DeviceId device) const {
  const auto bound = leases_.bound(device);
  if (!bound) return {};
  return {{"bound_ns", (bound->window + bound->revocation).count()},
          {"window_ns", bound->window.count()},
          {"revocation_ns", bound->revocation.count()},
          {"measured", bound->measured},
          {"so_far", revocations_json(*bound->sla)}};
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
