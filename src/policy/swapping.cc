#include "policy/swapping.h"

#include <algorithm>
#include <utility>

#include "policy/invariant.h"
#include "policy/make_room.h"

namespace heddle::policy {
namespace {

// Of those that wait: each is tried on copies of the books.
constexpr size_t kMostLookedAt = 16;

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
  task.swapped = scheduler_.state_.ledger().find(task.session, id)->memory;
  task.running = false;
  scheduler_.users_.give_back(task.session, task.swapped);
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
  task.wait = WaitKey{now, true, scheduler_.arrivals_++, task.model};
  scheduler_.enqueue(*task.wait,
                     {RequestKind::kResume, task.session, id, task.virtual_device, std::exchange(task.swapped, {})});
}

void Swapping::resume_withdrawn(TaskId id, TimePoint now) {
  scheduler_.seen_ = std::max(scheduler_.seen_, now);
  const auto it = scheduler_.tasks_.find(id);
  if (it == scheduler_.tasks_.end() || it->second.running || !it->second.wait) return;
  Scheduler::Task& task = it->second;
  const WaitKey key = *task.wait;
  if (scheduler_.lines_[key.model].at(key).kind != RequestKind::kResume) return;
  task.swapped = scheduler_.lines_[key.model].at(key).memory;
  scheduler_.drop_wait(key);
  task.wait.reset();
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
  scheduler_.tasks_[asked.id] = {asked.session, asked.virtual_device, *model, asked.compute,
                                 false,         asked.memory,         {},     {}};
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

}  // namespace heddle::policy
