// What people see of the scheduler's state.

#include "policy/scheduler.h"

namespace heddle::policy {

std::vector<DeviceView> Scheduler::devices() const {
  std::vector<DeviceView> views;
  for (uint64_t i = 0; i < pool().size(); ++i) {
    const DeviceId device{i};
    const DeviceLoad& load = pool().load(device);
    views.push_back({device,
                     pool().spec(device).memory,
                     load.tasks_memory + load.contexts_memory,
                     load.contexts_memory,
                     load.free,
                     load.withheld,
                     load.on_host,
                     load.warps,
                     pool().max_warps(device),
                     load.workers,
                     load.tasks,
                     {}});
  }
  for (const Line& line : lines_) {
    if (!line.reserved) continue;
    const auto holder = line.waits().find(line.reserved->holder);
    if (holder != line.waits().end()) views[line.reserved->device.value].reserved_for = holder->second.session;
  }
  return views;
}

std::vector<RunningView> Scheduler::running() const {
  std::vector<RunningView> views;
  for (const auto& [session, unused] : sessions_) {
    for (const TaskId task : state_.ledger().tasks(session)) {
      const Holding& holding = *state_.ledger().find(session, task);
      views.push_back({task, session, holding.device, holding.memory, holding.warps, holding.on_host});
    }
  }
  return views;
}

std::vector<WaitView> Scheduler::waiting() const {
  std::vector<WaitView> views;
  for (const Line& line : lines_) {
    size_t position = 0;
    for (const auto& [key, wait] : line.waits()) {
      views.push_back({wait.kind, wait.task, wait.session, wait.virtual_device, wait.memory, key.since,
                       line.why(wait).cause, line.why(wait).text, ++position});
    }
  }
  return views;
}

bool Scheduler::could_start_apart(const std::vector<TaskRequest>& requests) const {
  PlacementState trial(state_);
  Bytes memory;
  for (const TaskRequest& asked : requests) {
    const auto session = sessions_.find(asked.session);
    if (assigns_jobs() || session == sessions_.end()) return false;
    const auto model = admit(session->second, asked.model, asked.memory);
    if (!model || lines_[*model].anybody_waits(users_)) return false;
    const auto workers = trial.ledger().workers(asked.session, asked.virtual_device);
    Request request{asked.id, asked.session, session->second.job, asked.virtual_device,
                    *model,   asked.memory,  asked.compute,       workers,
                    {}};
    const Answer answer = trial.placement().place(request, trial.pool());
    const auto* placed = std::get_if<Placed>(&answer);
    if (!placed || !trial.pool().fits(request, placed->device) || trial.holds_on(asked.session, placed->device))
      return false;
    trial.begin(request, placed->device);
    memory += asked.memory;
  }
  if (requests.empty()) return true;
  const SessionId session = requests.front().session;
  return budgets_.live(session) + memory <= budgets_.budget(session) && !users_.over(session, memory);
}

bool Scheduler::could_start(const TaskRequest& asked) const {
  const auto session = sessions_.find(asked.session);
  if (session == sessions_.end()) return true;
  const auto model = admit(session->second, asked.model, asked.memory);
  if (!model) return true;
  if (budgets_.live(asked.session) + asked.memory > budgets_.budget(asked.session)) return false;
  if (users_.over(asked.session, asked.memory) || lines_[*model].anybody_waits(users_)) return false;
  const auto workers = state_.ledger().workers(asked.session, asked.virtual_device);
  const Request request{asked.id, asked.session, session->second.job, asked.virtual_device,
                        *model,   asked.memory,  asked.compute,       workers,
                        {}};
  const Answer answer = state_.placement().place(request, pool());
  const auto* placed = std::get_if<Placed>(&answer);
  return placed && pool().fits(request, placed->device);
}

bool Scheduler::could_extend(TaskId id, Bytes more) const {
  const auto found = tasks_.find(id);
  if (found == tasks_.end() || !found->second.running) return true;
  const Task& task = found->second;
  if (budgets_.live(task.session) + more > budgets_.budget(task.session)) return false;
  return !users_.over(task.session, more) && !lines_[task.model].anybody_waits(users_) &&
         state_.can_extend(task.session, id, more);
}

std::optional<BudgetView> Scheduler::budget(SessionId session) const {
  if (!sessions_.contains(session)) return {};
  return BudgetView{budgets_.budget(session), budgets_.live(session)};
}

}  // namespace heddle::policy
