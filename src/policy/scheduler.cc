#include "policy/scheduler.h"

#include <algorithm>

#include "policy/invariant.h"
#include "policy/text.h"

namespace heddle::policy {
namespace {

// The largest that a job can hold on one device of the model, beside one context.
Bytes largest(const Pool& pool, std::span<const DeviceId> devices) {
  Bytes most;
  for (const DeviceId device : devices) {
    const DeviceSpec& spec = pool.spec(device);
    if (pool.could_hold({}, device)) most = std::max(most, spec.memory - spec.context_memory);
  }
  return most;
}

template <class Sessions>
auto* find_session(Sessions& sessions, SessionId id) {
  const auto it = sessions.find(id);
  return it == sessions.end() ? nullptr : &it->second;
}

Error too_large(Bytes asked, Bytes limit, std::string_view where) {
  return {ErrorCode::kOutOfMemory, text(asked, " asked for, more than ", where, " can ever hold: ", limit)};
}

// It is attempted only when the gate names it.
bool is_set_aside(const Wait& wait, const PlacementState& state, const PlacementGate* gate) {
  return gate && wants_device(wait.kind) && !state.holds(wait.session) &&
         gate->is_special({wait.session, wait.virtual_device});
}

// None where it waits for reasons of its own.
std::optional<Need> need_of(const Wait& wait, const ComputeNeed& compute, const PlacementState& state,
                            const UserMemory& users) {
  if (!wants_device(wait.kind) || !state.placement().waits_alike() || state.holds(wait.session)) return {};
  return Need{wait.memory,
              compute.blocks,
              compute.threads_per_block,
              compute.registers_per_thread,
              compute.shared_per_block,
              users.most().value == 0 ? UserId{} : users.user(wait.session)};
}

Decision refused(Decision decision, Error error) {
  decision.error = error.code;
  decision.reason = std::move(error.text);
  return decision;
}

}  // namespace

Scheduler::Scheduler(std::unique_ptr<Placement> placement, std::vector<DeviceSpec> devices, Options options)
    : options_(options),
      state_(std::move(placement), std::move(devices)),
      users_(options.memory_per_user),
      lines_(pool().models()) {
  require(pool().size() > 0, "a pool has a device");
}

void Scheduler::session_opened(SessionId session, JobId job, std::string model, Bytes budget, TimePoint now,
                               UserId user, const std::string& app) {
  seen_ = std::max(seen_, now);
  if (budget.value == 0) {
    if (const auto known = pool().find_model(model)) budget = largest(pool(), pool().devices_of(*known));
  }
  state_.open_session(session, job, app, seen_);
  budgets_.open(session, job, budget);
  users_.open(session, user);
  sessions_[session] = {job, std::move(model), {}, {}};
  jobs_[job].insert(session);
}

void Scheduler::served(SessionId session, DeviceId device, const Service& since_last) {
  if (sessions_.contains(session) && pool().has(device)) state_.served(session, device, since_last);
}

void Scheduler::session_closed(SessionId id, TimePoint now) {
  seen_ = std::max(seen_, now);
  Session* session = find_session(sessions_, id);
  if (!session) return;
  for (const WaitKey& key : std::vector<WaitKey>(session->waits)) drop_wait(key);
  for (const TaskId task : session->tasks) tasks_.erase(task);
  state_.close_session(id, seen_);
  budgets_.close(id);
  users_.close(id);
  stay_.erase(id);
  const auto job = jobs_.find(session->job);
  job->second.erase(id);
  if (job->second.empty()) jobs_.erase(job);
  sessions_.erase(id);
  for (Line& line : lines_) line.retry = true;
}

void Scheduler::task_arrived(const TaskRequest& request, TimePoint now) {
  seen_ = std::max(seen_, now);
  require(!tasks_.contains(request.id), "a task id is used once");
  const Decision no{.task = request.id,
                    .memory = request.memory,
                    .session = request.session,
                    .virtual_device = request.virtual_device};
  Session* session = find_session(sessions_, request.session);
  if (!session)
    return decided_.push_back(refused(no, {ErrorCode::kNotFound, text("session ", request.session, " is not open")}));
  const auto model = admit(*session, request.model, request.memory);
  if (!model) return decided_.push_back(refused(no, model.error()));
  if (users_.most().value != 0 && request.memory > users_.most())
    return decided_.push_back(
        refused(no, {ErrorCode::kLimitExceeded, text(request.memory, " asked for, and a user may hold ", users_.most(),
                                                     " (limits.device_memory_per_user)")}));
  if (const auto claimed = budgets_.claim(request.session, request.memory); !claimed)
    return decided_.push_back(refused(no, claimed.error()));

  const WaitKey key{now, true, arrivals_++, *model};
  session->tasks.push_back(request.id);
  Task task;
  task.session = request.session;
  task.virtual_device = request.virtual_device;
  task.model = *model;
  task.compute = request.compute;
  task.wait = key;
  tasks_[request.id] = std::move(task);
  enqueue(key, {RequestKind::kTask, request.session, request.id, request.virtual_device, request.memory});
}

void Scheduler::compute_grew(TaskId id, const ComputeNeed& need, TimePoint now) {
  seen_ = std::max(seen_, now);
  const auto it = tasks_.find(id);
  if (it == tasks_.end()) return;
  it->second.compute = need;
  if (it->second.running) {
    state_.set_compute(it->second.session, id, need);
  } else {
    needs_changed(it->second.session);
  }
  returned_on(it->second.model);  // the least loaded device may be another one now
  deadlock_possible_ = true;
}

void Scheduler::extension_requested(TaskId id, Bytes more, TimePoint now) {
  seen_ = std::max(seen_, now);
  const auto it = tasks_.find(id);
  if (it == tasks_.end()) return;
  Task& task = it->second;
  const Decision no{.request = RequestKind::kExtension,
                    .task = id,
                    .memory = more,
                    .session = task.session,
                    .virtual_device = task.virtual_device};
  const auto devices = state_.placement().candidates(task.model, pool());
  const Holding* holding = state_.ledger().find(task.session, id);
  const Bytes limit = holding ? largest(pool(), std::span(&holding->device, 1)) : largest(pool(), devices);
  // Of one that is away, what it comes back with.
  const bool resumes = task.wait && lines_[task.model].at(*task.wait).kind == RequestKind::kResume;
  const Bytes held = holding   ? holding->memory + holding->on_host
                     : resumes ? lines_[task.model].at(*task.wait).memory
                               : task.swapped;
  if (more > limit || held > limit - more) {
    Error error = too_large(more, limit, holding ? text("device ", holding->device) : std::string("any device"));
    append(error.text, ", and the task has ", held, " there");
    return decided_.push_back(refused(no, std::move(error)));
  }
  if (const auto claimed = budgets_.claim(task.session, more); !claimed)
    return decided_.push_back(refused(no, claimed.error()));
  task.extensions.push_back({more, now, arrivals_++});
  if (task.running && !task.wait) enqueue_next_extension(id, task);
}

void Scheduler::memory_freed(TaskId id, Bytes less, TimePoint now) {
  seen_ = std::max(seen_, now);
  const auto it = tasks_.find(id);
  if (it == tasks_.end()) return;
  Task& task = it->second;
  if (task.running) {
    less = state_.shrink(task.session, id, less);
    users_.give_back(task.session, less);
  } else {
    Bytes& asked = task.wait ? lines_[task.model].at(*task.wait).memory : task.swapped;
    less = std::min(less, asked - task.asked_besides());
    asked -= less;
    needs_changed(task.session);
  }
  budgets_.give_back(task.session, less);
  returned_on(task.model);
}

void Scheduler::outside_memory(DeviceId device, Bytes used, TimePoint now) {
  seen_ = std::max(seen_, now);
  if (!pool().has(device)) return;
  state_.set_outside(device, used);
  returned_on(pool().model_of(device));
}

void Scheduler::task_ended(TaskId id, TimePoint now) {
  seen_ = std::max(seen_, now);
  const auto it = tasks_.find(id);
  if (it == tasks_.end()) return;
  const Task& task = it->second;
  const size_t model = task.model;
  if (task.running) {
    const Holding& holding = *state_.ledger().find(task.session, id);
    budgets_.give_back(task.session, holding.memory + holding.on_host);
    users_.give_back(task.session, holding.memory);
    state_.end(task.session, id);
  }
  if (task.wait) {
    budgets_.give_back(task.session, lines_[model].at(*task.wait).memory);
    drop_wait(WaitKey(*task.wait));
  }
  budgets_.give_back(task.session, task.swapped);
  forget_task(id);
  returned_on(model);
}

Status Scheduler::adopt(const TaskRequest& asked, DeviceId device, TimePoint now) {
  seen_ = std::max(seen_, now);
  require(!tasks_.contains(asked.id), "a task id is used once");
  Session* session = find_session(sessions_, asked.session);
  if (!session)
    return fail(ErrorCode::kNotFound, "session %lu is not open", static_cast<unsigned long>(asked.session.value));
  if (!pool().has(device))
    return fail(ErrorCode::kInvalidArgument, "there is no device %lu; the pool has %zu",
                static_cast<unsigned long>(device.value), pool().size());
  const size_t model = pool().model_of(device);
  const auto workers = state_.ledger().workers(asked.session, asked.virtual_device);
  const Bytes on_device = asked.memory - asked.on_host;
  const Request request{asked.id, asked.session, session->job,  asked.virtual_device,
                        model,    on_device,     asked.compute, workers,
                        {},       nullptr};
  if (!pool().fits(request, device))
    return fail(ErrorCode::kOutOfMemory, "task %lu runs on device %lu with %s, where only %s is free",
                static_cast<unsigned long>(asked.id.value), static_cast<unsigned long>(device.value),
                to_string(on_device).c_str(), to_string(pool().free(device)).c_str());
  state_.begin(request, device);
  state_.put_on_host(asked.session, asked.id, asked.on_host);
  needs_changed(asked.session);
  budgets_.restore(asked.session, asked.memory);
  users_.take(asked.session, on_device);
  session->tasks.push_back(asked.id);
  Task task;
  task.session = asked.session;
  task.virtual_device = asked.virtual_device;
  task.model = model;
  task.compute = asked.compute;
  task.running = true;
  tasks_[asked.id] = std::move(task);
  returned_on(model);  // under a policy that assigns jobs, as for adopt_assignment
  deadlock_possible_ = true;
  return {};
}

Status Scheduler::adopt_assignment(SessionId id, uint32_t virtual_device, DeviceId device, TimePoint now) {
  seen_ = std::max(seen_, now);
  Session* session = find_session(sessions_, id);
  if (!session) return fail(ErrorCode::kNotFound, "session %lu is not open", static_cast<unsigned long>(id.value));
  if (!pool().has(device) || !assigns_jobs())
    return fail(ErrorCode::kInvalidArgument, "session %lu cannot be assigned to device %lu under this policy and pool",
                static_cast<unsigned long>(id.value), static_cast<unsigned long>(device.value));
  const auto workers = state_.ledger().workers(id, virtual_device);
  const Request request{{}, id, session->job, virtual_device, pool().model_of(device), {}, {}, workers, {}, nullptr};
  if (!pool().fits(request, device))
    return fail(ErrorCode::kOutOfMemory, "device %lu has no space for a context: %s is free",
                static_cast<unsigned long>(device.value), to_string(pool().free(device)).c_str());
  state_.assign(request, device);
  needs_changed(id);
  returned_on(request.model);  // another session of the job may wait for this very assignment
  deadlock_possible_ = true;
  return {};
}

// The model's index, where some device of it that the policy uses could ever hold `memory`.
Result<size_t> Scheduler::admit(const Session& session, const std::string& asked_model, Bytes memory) const {
  const std::string& name = asked_model.empty() ? session.model : asked_model;
  const auto model = pool().find_model(name);
  if (!model) {
    std::string known;
    for (size_t i = 0; i < pool().models(); ++i) append(known, i == 0 ? "" : ", ", pool().model_name(i));
    return tl::unexpected(Error{ErrorCode::kNotFound, text("no device of model '", name, "'; the pool has ", known)});
  }
  const auto devices = state_.placement().candidates(*model, pool());
  if (std::any_of(devices.begin(), devices.end(), [&](DeviceId device) { return pool().could_hold(memory, device); }))
    return *model;
  return tl::unexpected(too_large(memory, largest(pool(), devices), text("any device of model ", name)));
}

void Scheduler::enqueue(const WaitKey& key, Wait wait) {
  Session& session = sessions_.at(wait.session);
  session.waits.push_back(key);
  deadlock_possible_ = deadlock_possible_ || state_.holds(wait.session);
  wait.set_aside = is_set_aside(wait, state_, options_.gate);
  if (!wait.set_aside) wait.need = need_of(wait, tasks_.at(wait.task).compute, state_, users_);
  lines_[key.model].add(key, std::move(wait));
}

void Scheduler::drop_wait(const WaitKey& key) {
  Line& line = lines_[key.model];
  std::erase(sessions_.at(line.remove(key).session).waits, key);
  std::erase(line.fresh, key);
  line.retry = true;  // it may have been the oldest, with a reservation
}

// What the session's requests ask for is different now, or what it holds is. What is assigned to a job, all of its
// sessions hold.
void Scheduler::needs_changed(SessionId session) {
  const auto stand_anew = [&](const Session& each) {
    for (const WaitKey& key : each.waits) {
      Line& line = lines_[key.model];
      const Wait& wait = line.at(key);
      const bool aside = is_set_aside(wait, state_, options_.gate);
      line.set_need(key, aside ? std::nullopt : need_of(wait, tasks_.at(wait.task).compute, state_, users_), aside);
    }
  };
  const Session& changed = sessions_.at(session);
  if (!assigns_jobs()) return stand_anew(changed);
  for (const SessionId each : jobs_.at(changed.job)) stand_anew(sessions_.at(each));
}

// The extensions that do not stand in the line yet go with it.
void Scheduler::forget_task(TaskId id) {
  const auto it = tasks_.find(id);
  const SessionId session = it->second.session;
  const auto& extensions = it->second.extensions;
  for (size_t i = it->second.resumes_with; i < extensions.size(); ++i) budgets_.give_back(session, extensions[i].more);
  std::erase(sessions_.at(session).tasks, id);
  tasks_.erase(it);
}

void Scheduler::enqueue_next_extension(TaskId id, Task& task) {
  if (task.extensions.empty()) return;
  const Extension next = task.extensions.front();
  task.extensions.erase(task.extensions.begin());
  task.wait = WaitKey{next.since, false, next.arrival, task.model};
  enqueue(*task.wait, {RequestKind::kExtension, task.session, id, task.virtual_device, next.more, {}});
}

}  // namespace heddle::policy
