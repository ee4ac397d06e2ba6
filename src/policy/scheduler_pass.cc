// The deciding half of the scheduler: passes over the lines of waiting requests.

#include <algorithm>
#include <tuple>
#include <utility>

#include "policy/placement/reasons.h"
#include "policy/scheduler.h"
#include "policy/swapping.h"
#include "policy/text.h"

namespace heddle::policy {
namespace {

// The device that its job is assigned to; else, of those that the request could run on, the one that lacks least of its
// memory (scheduler.h).
DeviceId device_to_reserve(const PlacementState& state, const Request& request) {
  const Pool& pool = state.pool();
  const auto lacks = [&](DeviceId device) {
    const Bytes need = pool.need(request, device);
    const Bytes free = pool.free(device);
    return std::tuple(!pool.could_hold(request.memory, device), need > free ? need - free : Bytes{},
                      pool.load(device).warps, device);
  };
  if (const auto assigned = state.placement().assignment(request)) return *assigned;
  const auto devices = state.placement().candidates(request.model, pool);
  return *std::min_element(devices.begin(), devices.end(), [&](DeviceId a, DeviceId b) { return lacks(a) < lacks(b); });
}

// Whether the device that is closed to the request has its memory.
bool is_kept_for_another(Request request, const Pool& pool) {
  const auto closed = std::exchange(request.closed, std::nullopt);
  return closed && pool.fits(request, *closed);
}

// The gate keeps it back, wherever it would go.
bool kept_back(const Wait& wait, const PlacementState& state, const PlacementGate* gate) {
  return gate && wants_device(wait.kind) && !state.holds(wait.session) &&
         !gate->may_go({wait.session, wait.virtual_device});
}

Decision refusal(ErrorCode error, std::string reason) {
  return {.kind = Decision::Kind::kRefuse, .error = error, .reason = std::move(reason)};
}

}  // namespace

std::vector<Decision> Scheduler::decisions(TimePoint now) {
  seen_ = std::max(seen_, now);
  if (options_.gate && gate_seen_ != options_.gate->version()) {
    gate_seen_ = options_.gate->version();
    for (Line& line : lines_) line.retry = true;
  }
  do {
    for (size_t model = 0; model < lines_.size(); ++model) {
      Line& line = lines_[model];
      do {
        serve(model, seen_);
      } while (line.retry || !line.fresh.empty());
    }
  } while (break_deadlock(seen_));
  return std::exchange(decided_, {});
}

std::optional<TimePoint> Scheduler::next_deadline() const {
  std::optional<TimePoint> next;
  if (state_.placement().memory_oblivious()) return next;  // nothing is ever reserved
  for (const Line& line : lines_) {
    const auto oldest = line.oldest(users_);
    if (oldest == line.waits().end()) continue;
    const TimePoint of_age = oldest->first.since + options_.age_limit;
    if (of_age > seen_) next = earlier(next, of_age);
  }
  return next;
}

// One pass: everybody where something returned, else those who came since the last pass.
void Scheduler::serve(size_t model, TimePoint now) {
  Line& line = lines_[model];
  const std::vector<WaitKey> fresh = std::exchange(line.fresh, {});
  Pass pass = std::exchange(line.retry, false) ? Pass(line) : Pass(line, fresh);
  if (options_.gate) {
    for (const Lessee lessee : options_.gate->next()) pass.add_first(line.set_aside(lessee));
  }
  reserve_for_oldest(line, now);
  while (const auto key = pass.next()) {
    if (attempt(*key, now)) {
      reserve_for_oldest(line, now);
      // A task's next extension takes its place by its own age.
      pass.decided(std::exchange(line.fresh, {}));
      continue;
    }
    Wait& wait = line.at(*key);
    // Whom the device is reserved for may go there, the others of its need may not.
    const bool alike = wait.need && !(line.reserved && line.reserved->holder == *key);
    if (alike) line.answered_for_all(wait);
    pass.waits(alike);
  }
}

// True where the request was decided; it then no longer waits.
bool Scheduler::attempt(const WaitKey& key, TimePoint now) {
  Wait& wait = lines_[key.model].at(key);
  if (users_.over(wait.session, wait.memory)) {
    wait.why = {text("needs ", wait.memory, ", and the user's programs hold ", users_.held(wait.session), " of the ",
                     users_.most(), " that a user may (limits.device_memory_per_user)"),
                WaitCause::kUserLimit};
    if (!state_.holds(wait.session)) return false;
    finish(key, refusal(ErrorCode::kLimitExceeded, wait.why.text), now);
    return true;
  }
  return wait.kind == RequestKind::kExtension ? attempt_extension(key, wait, now) : attempt_place(key, wait, now);
}

bool Scheduler::attempt_extension(const WaitKey& key, Wait& wait, TimePoint now) {
  const DeviceId device = state_.ledger().find(wait.session, wait.task)->device;
  const Bytes free = pool().free(device);
  if (!state_.can_extend(wait.session, wait.task, wait.memory)) {
    wait.why = {text("needs ", wait.memory, " more on device ", device, "; ", free, " of ", pool().spec(device).memory,
                     " is free")};
    append_withheld(wait.why.text, device, pool());
    if (!state_.placement().memory_oblivious()) return false;
    finish(key, refusal(ErrorCode::kOutOfMemory, text(wait.why.text, ", and this policy does not wait for memory")),
           now);
    return true;
  }
  state_.extend(wait.session, wait.task, wait.memory);
  users_.take(wait.session, wait.memory);
  finish(key,
         {.kind = Decision::Kind::kExtend,
          .device = device,
          .reason = text(wait.memory, " more on device ", device, ", of ", free, " free")},
         now);
  return true;
}

bool Scheduler::attempt_place(const WaitKey& key, Wait& wait, TimePoint now) {
  if (kept_back(wait, state_, options_.gate)) {
    if (wait.why.cause != WaitCause::kTurn) wait.why = {"others go first to the next device", WaitCause::kTurn};
    return false;
  }
  Request request = request_of(wait, key.model);
  const auto workers = state_.ledger().workers(wait.session, wait.virtual_device);
  request.workers = workers;
  const auto& reserved = lines_[key.model].reserved;
  if (reserved && reserved->holder != key && !state_.holds(wait.session)) request.closed = reserved->device;
  if (!state_.holds(wait.session)) request.gate = options_.gate;
  Answer answer = state_.placement().place(request, pool());
  if (auto* later = std::get_if<NotNow>(&answer)) {
    wait.why = {std::move(later->reason), later->cause};
    if (later->cause == WaitCause::kMemory && is_kept_for_another(request, pool()))
      wait.why.cause = WaitCause::kReservation;
    return false;
  }
  return grant_where_placed(key, request, std::get<Placed>(std::move(answer)), now);
}

// Under a memory-oblivious policy the device may turn out to be too full: then the request fails, as it would natively,
// though the place stays the job's where at least the context fits.
bool Scheduler::grant_where_placed(const WaitKey& key, const Request& request, Placed placed, TimePoint now) {
  const DeviceId device = placed.device;
  if (!pool().fits(request, device)) {
    std::string why =
        text(placed.reason, "; but it needs ", pool().need(request, device), " there, ", pool().free(device), " of ",
             pool().spec(device).memory, " is free, and this policy does not wait for memory");
    Request context_only = request;
    context_only.memory = {};
    if (assigns_jobs() && pool().fits(context_only, device)) state_.assign(context_only, device);
    finish(key, refusal(ErrorCode::kOutOfMemory, std::move(why)), now);
    needs_changed(request.session);
    return true;
  }
  if (request.gate) options_.gate->placed({request.session, request.virtual_device}, device);
  state_.begin(request, device);
  users_.take(request.session, request.memory);
  finish(key, {.kind = Decision::Kind::kGrant, .device = device, .reason = std::move(placed.reason)}, now);
  needs_changed(request.session);
  return true;
}

// A policy that knows nothing of memory treats all requests alike, so nobody is overtaken and nothing needs reserving.
void Scheduler::reserve_for_oldest(Line& line, TimePoint now) {
  line.reserved.reset();
  if (line.waits().empty() || state_.placement().memory_oblivious()) return;
  const auto oldest = line.oldest(users_);
  if (oldest == line.waits().end()) return;
  const auto& [key, wait] = *oldest;
  if (now - key.since < options_.age_limit || kept_back(wait, state_, options_.gate)) return;
  const DeviceId device = wait.kind == RequestKind::kExtension ? state_.ledger().find(wait.session, wait.task)->device
                                                               : device_to_reserve(state_, request_of(wait, key.model));
  if (options_.gate && !state_.holds(wait.session) && !options_.gate->open({wait.session, wait.virtual_device}, device))
    return;
  line.reserved = Reservation{key, device};
}

Request Scheduler::request_of(const Wait& wait, size_t model) const {
  return {wait.task, wait.session, sessions_.at(wait.session).job, wait.virtual_device,
          model,     wait.memory,  tasks_.at(wait.task).compute,   {},
          {},        nullptr};
}

bool Scheduler::break_deadlock(TimePoint now) {
  if (!deadlock_possible_) return false;
  std::vector<Blocked> blocked;  // sessions that hold nothing keep nobody waiting
  for (size_t model = 0; model < lines_.size(); ++model) {
    for (const WaitKey& key : lines_[model].others()) {
      const Wait& wait = lines_[model].at(key);
      // What it holds returns.
      if (!Swapping(*this).is_leaving(wait.session)) blocked.push_back({key, wait.kind, request_of(wait, model)});
    }
  }
  auto deadlock = find_deadlock(state_, blocked);
  if (!deadlock) {
    deadlock_possible_ = false;
    stay_.clear();
    return false;
  }
  const WaitKey victim = blocked[deadlock->victim].key;
  const SessionId session = blocked[deadlock->victim].request.session;
  if (!deadlock->alone && Swapping(*this).leave(session, deadlock->reason)) return true;
  std::string why = text("refused, because waiting could never end: ", deadlock->reason);
  if (deadlock->alone && options_.swaps) append(why, ", and has its own tasks in its way");
  if (const auto stays = stay_.find(session); stays != stay_.end())
    append(why, "; and the program's memory cannot leave the device meanwhile: ", stays->second);
  finish(victim, refusal(ErrorCode::kOutOfMemory, std::move(why)), now);
  returned_on(victim.model);
  return true;
}

// Takes the request out of its line and reports what became of it.
void Scheduler::finish(const WaitKey& key, Decision decision, TimePoint now) {
  const Wait wait = lines_[key.model].remove(key);
  Session& session = sessions_.at(wait.session);
  std::erase(session.waits, key);
  // Served in part, or, with a place for the job, another session of it that waits.
  deadlock_possible_ = deadlock_possible_ || assigns_jobs() || !session.waits.empty();
  decision.request = wait.kind;
  decision.task = wait.task;
  decision.session = wait.session;
  decision.virtual_device = wait.virtual_device;
  decision.memory = wait.memory;
  decision.waited = now - key.since;
  const bool granted = decision.kind != Decision::Kind::kRefuse;
  decided_.push_back(std::move(decision));
  if (!granted) budgets_.give_back(wait.session, wait.memory);
  Task& task = tasks_.at(wait.task);
  task.wait.reset();
  if (wants_device(wait.kind) && !granted) return forget_task(wait.task);
  task.running = true;
  if (wait.kind == RequestKind::kResume) Swapping(*this).resumed(wait.task, decided_.back());
  enqueue_next_extension(wait.task, task);
}

}  // namespace heddle::policy
