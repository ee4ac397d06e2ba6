// The part of Commands that is about one job.

#include <nlohmann/json.hpp>

#include "daemon/commands.h"

namespace heddle::daemon {

// Another user's job is answered like one that does not exist.
Result<Job*> Commands::find_job(const Json& request, const Asker& asker) {
  const auto id = number_in(request, "job");
  if (!id) return tl::unexpected(id.error());
  Job* job = shared_.registry.find_job(JobId{*id});
  if (!job || !asker.may_see(job->uid))
    return fail(ErrorCode::kNotFound, "there is no job %lu", static_cast<unsigned long>(*id));
  return job;
}

Result<Commands::Json> Commands::job(const Json& request, Asker& asker) {
  const auto job = find_job(request, asker);
  if (!job) return tl::unexpected(job.error());
  Json json{{"job", (*job)->id.value}, {"name", (*job)->name}, {"cancelled", (*job)->cancelled}, {"waiting_ns", 0}};
  json.update(suspension(**job));
  Json sessions = Json::array();
  const Descriptions describe = descriptions_for(asker);
  uint64_t findings = (*job)->findings;
  for (const SessionId id : (*job)->sessions) {
    Session* session = shared_.registry.find_session(id);
    if (!session) continue;
    findings += findings_of(*session);
    if (sessions.size() == kPsPage) continue;
    sessions.push_back(describe.session(*session));
    for (const Json& task : sessions.back()["tasks"]) {
      if (task["state"] == "running" || task["state"] == "in trial" || task["waited_ns"] <= json["waiting_ns"])
        continue;
      // Somebody wants it so; and one that waits to come back has too much to lose to be given up for waiting.
      if (task["state"] == "suspending" || task["state"] == "suspended" || task.contains("swapped")) continue;
      json["waiting_ns"] = task["waited_ns"];
      json["waiting_for"] = task["reason"];
    }
  }
  json["sessions"] = sessions;
  json["findings"] = findings;
  return json;
}

Result<Commands::Json> Commands::cancel(const Json& request, Asker& asker) {
  const auto job = find_job(request, asker);
  if (!job) return tl::unexpected(job.error());
  sessions_.cancel(**job);
  return Json{{"cancelled", (*job)->id.value}};
}

// How far it is: of its tasks that have a device, those that are suspended and those that are not yet.
Commands::Json Commands::suspension(const Job& job) const {
  uint64_t suspended = 0, suspending = 0, swapped = 0, swapping = 0;
  Bytes bytes;
  for (const SessionId id : job.sessions) {
    const Session* session = shared_.registry.find_session(id);
    if (!session) continue;
    for (const VirtualDevice& device : session->devices) {
      if (!device.task) continue;
      const TaskState state = device.task->state;
      swapped += state == TaskState::kSwapped;
      swapping += state == TaskState::kSwappingOut;
      suspended += state == TaskState::kSuspended || state == TaskState::kSwapped || state == TaskState::kSwappingOut;
      suspending += state == TaskState::kSuspending || (job.suspended && state == TaskState::kPromoting);
      bytes += device.swapped;
    }
  }
  Json json{{"suspended", job.suspended}, {"suspended_tasks", suspended}, {"suspending_tasks", suspending},
            {"swapped_tasks", swapped},   {"swapping_tasks", swapping},   {"swapped", bytes.value}};
  if (!job.not_swapped.empty()) json["not_swapped"] = job.not_swapped;
  if (!job.not_suspended.empty()) json["not_suspended"] = job.not_suspended;
  return json;
}

// Asked again while some of its tasks are still suspending, it tells how far they are.
Result<Commands::Json> Commands::suspend(const Json& request, Asker& asker) {
  const auto job = find_job(request, asker);
  if (!job) return tl::unexpected(job.error());
  const unsigned long id = (*job)->id.value;
  const bool swap = request.value("swap", Json()) == true;
  if (!swap && (*job)->suspended && suspension(**job)["suspending_tasks"] == 0)
    return fail(ErrorCode::kInvalidArgument, "job %lu is suspended already: 'heddle resume %lu' lets it go on", id, id);
  if (swap) HEDDLE_TRY(sessions_.may_swap(**job));
  if (!(*job)->suspended) HEDDLE_TRY(sessions_.suspend(**job));
  if (swap) sessions_.swap(**job);
  Json json = suspension(**job);
  json["job"] = id;
  return json;
}

Result<Commands::Json> Commands::resume(const Json& request, Asker& asker) {
  const auto job = find_job(request, asker);
  if (!job) return tl::unexpected(job.error());
  HEDDLE_TRY(sessions_.resume(**job));
  Json json = suspension(**job);
  json["job"] = (*job)->id.value;
  return json;
}

}  // namespace heddle::daemon
