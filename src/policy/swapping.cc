#include "policy/swapping.h"

#include <algorithm>
#include <utility>

#include "policy/invariant.h"
#include "policy/make_room.h"
#include "policy/text.h"

namespace heddle::policy {
namespace {

// Of those that wait: each is tried on copies of the books.
constexpr size_t kMostLookedAt = 16;

// What copies cost is a tenth of the time at most.
constexpr int kStaysForIdle = 5, kStaysForCopies = 10;

}  // namespace

// The one that stands in the line goes before those that do not yet.
void Swapping::keep_extensions(Scheduler::Task& task) {
  if (!task.wait) return;
  const WaitKey key = *task.wait;
  const Bytes more = scheduler_.lines_[key.model].at(key).memory;
  scheduler_.drop_wait(key);
  task.wait.reset();
  task.extensions.insert(task.extensions.begin(), {more, key.since, key.arrival});
}

void Swapping::swapped_out(TaskId id, TimePoint now) {
  scheduler_.seen_ = std::max(scheduler_.seen_, now);
  const auto it = scheduler_.tasks_.find(id);
  if (it == scheduler_.tasks_.end() || !it->second.running) return;
  require(!scheduler_.state_.placement().memory_oblivious(), "memory leaves devices only where the policy counts it");
  Scheduler::Task& task = it->second;
  keep_extensions(task);
  const Holding holding = *scheduler_.state_.ledger().find(task.session, id);
  task.swapped = holding.memory + holding.on_host;
  task.running = task.leaving = false;
  scheduler_.deadlock_possible_ = true;
  scheduler_.users_.give_back(task.session, holding.memory);
  scheduler_.state_.end(task.session, id);
  scheduler_.needs_changed(task.session);
  // Its session's requests for other models are asked for anew as well.
  for (const WaitKey& key : scheduler_.sessions_.at(task.session).waits) scheduler_.lines_[key.model].retry = true;
  scheduler_.returned_on(task.model);
}

void Swapping::resume_requested(TaskId id, TimePoint now) {
  scheduler_.seen_ = std::max(scheduler_.seen_, now);
  const auto it = scheduler_.tasks_.find(id);
  if (it == scheduler_.tasks_.end() || it->second.running || it->second.wait) return;
  Scheduler::Task& task = it->second;
  task.resumes_with = fit_together(task, id);
  const Bytes memory = std::exchange(task.swapped, {}) + task.asked_besides();
  TimePoint since = now;
  for (size_t i = 0; i < task.resumes_with; ++i) since = std::min(since, task.extensions[i].since);
  task.wait = WaitKey{since, true, scheduler_.arrivals_++, task.model};
  scheduler_.enqueue(*task.wait, {RequestKind::kResume, task.session, id, task.virtual_device, memory});
}

void Swapping::resume_withdrawn(TaskId id, TimePoint now) {
  scheduler_.seen_ = std::max(scheduler_.seen_, now);
  const auto it = scheduler_.tasks_.find(id);
  if (it == scheduler_.tasks_.end() || it->second.running || !it->second.wait) return;
  Scheduler::Task& task = it->second;
  const WaitKey key = *task.wait;
  if (scheduler_.lines_[key.model].at(key).kind != RequestKind::kResume) return;
  task.swapped = scheduler_.lines_[key.model].at(key).memory;
  task.swapped -= task.asked_besides();
  task.resumes_with = 0;
  scheduler_.drop_wait(key);
  task.wait.reset();
}

// How many of the extensions, the first, a device could ever hold beside what the task had.
size_t Swapping::fit_together(const Scheduler::Task& task, TaskId id) const {
  const Pool& pool = scheduler_.pool();
  const auto& placement = scheduler_.state_.placement();
  const Wait as_wait{RequestKind::kResume, task.session, id, task.virtual_device, task.swapped};
  const auto assigned = placement.assignment(scheduler_.request_of(as_wait, task.model));
  const auto could_hold = [&](Bytes memory) {
    if (scheduler_.users_.most().value != 0 && memory > scheduler_.users_.most()) return false;
    if (assigned) return pool.could_hold(memory, *assigned);
    const auto devices = placement.candidates(task.model, pool);
    return std::any_of(devices.begin(), devices.end(), [&](DeviceId each) { return pool.could_hold(memory, each); });
  };
  size_t count = 0;
  for (Bytes memory = task.swapped; count < task.extensions.size(); ++count) {
    memory += task.extensions[count].more;
    if (!could_hold(memory)) break;
  }
  return count;
}

void Swapping::resumed(TaskId id, const Decision& granted) {
  Scheduler::Task& task = scheduler_.tasks_.at(id);
  Decision extended = granted;
  extended.kind = Decision::Kind::kExtend;
  extended.request = RequestKind::kExtension;
  extended.reason = "with its device";
  const auto end = task.extensions.begin() + static_cast<std::ptrdiff_t>(std::exchange(task.resumes_with, 0));
  for (auto each = task.extensions.begin(); each != end; ++each) {
    extended.memory = each->more;
    scheduler_.decided_.push_back(extended);
  }
  task.extensions.erase(task.extensions.begin(), end);
}

bool Swapping::is_leaving(SessionId session) const {
  const auto& tasks = scheduler_.sessions_.at(session).tasks;
  return std::any_of(tasks.begin(), tasks.end(), [&](TaskId id) { return scheduler_.tasks_.at(id).leaving; });
}

bool Swapping::leave(SessionId session, const std::string& reason) {
  if (!scheduler_.options_.swaps || scheduler_.state_.placement().memory_oblivious()) return false;
  if (scheduler_.stay_.contains(session)) return false;
  bool any = false;
  for (const TaskId id : scheduler_.sessions_.at(session).tasks) {
    Scheduler::Task& task = scheduler_.tasks_.at(id);
    if (!task.running) continue;
    const Holding& holding = *scheduler_.state_.ledger().find(session, id);
    any = task.leaving = true;
    scheduler_.decided_.push_back({.kind = Decision::Kind::kLeave,
                                   .task = id,
                                   .device = holding.device,
                                   .memory = holding.memory,
                                   .reason = text("waiting could never end: ", reason),
                                   .session = session,
                                   .virtual_device = task.virtual_device});
  }
  if (!any) scheduler_.stay_[session] = "it has no task there, only its job's place";
  return any;
}

void Swapping::stays(TaskId id, const std::string& why, TimePoint now) {
  scheduler_.seen_ = std::max(scheduler_.seen_, now);
  const auto it = scheduler_.tasks_.find(id);
  if (it == scheduler_.tasks_.end()) return;
  it->second.leaving = false;
  scheduler_.stay_[it->second.session] = why;
  scheduler_.deadlock_possible_ = true;
}

Status Swapping::adopt(const TaskRequest& asked, TimePoint now) {
  scheduler_.seen_ = std::max(scheduler_.seen_, now);
  require(!scheduler_.tasks_.contains(asked.id), "a task id is used once");
  const auto session = scheduler_.sessions_.find(asked.session);
  if (session == scheduler_.sessions_.end())
    return fail(ErrorCode::kNotFound, "session %lu is not open", static_cast<unsigned long>(asked.session.value));
  const auto model = scheduler_.admit(session->second, asked.model, asked.memory);
  if (!model) return tl::unexpected(model.error());
  if (scheduler_.state_.placement().memory_oblivious())
    return fail(ErrorCode::kNotSupported, "the policy does not count memory, and a task was swapped out under another");
  scheduler_.budgets_.restore(asked.session, asked.memory);
  session->second.tasks.push_back(asked.id);
  Scheduler::Task task;
  task.session = asked.session;
  task.virtual_device = asked.virtual_device;
  task.model = *model;
  task.compute = asked.compute;
  task.swapped = asked.memory;
  scheduler_.tasks_[asked.id] = std::move(task);
  return {};
}

bool Swapping::anybody_waits(const Scheduler& scheduler) {
  return std::any_of(scheduler.lines_.begin(), scheduler.lines_.end(),
                     [&](const Line& line) { return line.anybody_waits(scheduler.users_); });
}

std::vector<TaskId> Swapping::who_makes_room(const Scheduler& scheduler, const std::vector<TaskId>& could_leave,
                                             TimePoint asked_by) {
  std::vector<MayLeave> tasks;
  for (const TaskId id : could_leave) {
    const auto it = scheduler.tasks_.find(id);
    if (it != scheduler.tasks_.end() && it->second.running) tasks.push_back({id, it->second.session});
  }
  if (tasks.empty() || scheduler.state_.placement().memory_oblivious()) return {};
  for (size_t model = 0; model < scheduler.lines_.size(); ++model) {
    size_t looked_at = 0;
    for (const auto& [key, wait] : scheduler.lines_[model].waits()) {
      if (key.since > asked_by || ++looked_at > kMostLookedAt) break;
      if (scheduler.users_.over(wait.session, wait.memory)) continue;
      Request request = scheduler.request_of(wait, model);
      if (wants_device(wait.kind) && !scheduler.state_.holds(wait.session)) request.gate = scheduler.options_.gate;
      if (request.gate && !request.gate->may_go({wait.session, wait.virtual_device})) continue;
      auto leaving = make_room(scheduler.state_, {key, wait.kind, request}, tasks);
      if (!leaving.empty()) return leaving;
    }
  }
  return {};
}

bool may_leave_again(Duration stayed, Duration copied, Duration idle) {
  return stayed >= std::max(kStaysForIdle * idle, kStaysForCopies * copied);
}

}  // namespace heddle::policy
