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
                     load.warps,
                     pool().max_warps(device),
                     load.workers,
                     load.tasks,
                     {}});
  }
  for (const Line& line : lines_) {
    if (!line.reserved) continue;
    const auto holder = line.waits.find(line.reserved->holder);
    if (holder != line.waits.end()) views[line.reserved->device.value].reserved_for = holder->second.session;
  }
  return views;
}

std::vector<RunningView> Scheduler::running() const {
  std::vector<RunningView> views;
  for (const auto& [session, unused] : sessions_) {
    for (const TaskId task : board_.ledger().tasks(session)) {
      const Holding& holding = *board_.ledger().find(session, task);
      views.push_back({task, session, holding.device, holding.memory, holding.warps});
    }
  }
  return views;
}

std::vector<WaitView> Scheduler::waiting() const {
  std::vector<WaitView> views;
  for (const Line& line : lines_) {
    size_t position = 0;
    for (const auto& [key, wait] : line.waits) {
      views.push_back(
          {wait.kind, wait.task, wait.session, wait.virtual_device, wait.memory, key.since, wait.why, ++position});
    }
  }
  return views;
}

std::optional<BudgetView> Scheduler::budget(SessionId session) const {
  if (!sessions_.contains(session)) return {};
  return BudgetView{budgets_.budget(session), budgets_.live(session)};
}

}  // namespace heddle::policy
