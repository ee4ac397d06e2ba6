#include "daemon/shared_faults.h"

#include <algorithm>

#include "daemon/batch_sms.h"
#include "daemon/cuda_codes.h"
#include "daemon/mps_clients.h"
#include "daemon/resumable.h"

namespace heddle::daemon {
namespace {

using Health = DeviceState::Health;

constexpr Duration kTrialLook = std::chrono::milliseconds(2);
// A kernel may take longer. Then the others go on beside it.
constexpr Duration kLongestTrial = std::chrono::seconds(10);
// From judgement on, in which the contexts of all trials are made: 0.1 s each.
constexpr Duration kTogether = std::chrono::milliseconds(600);
// Of a misaligned access MPS tells some 100 ms late, when its program may have ended (tests/gpu/faults.py).
constexpr Duration kLateFault = std::chrono::seconds(1);
constexpr size_t kMostSuspicions = 3;
constexpr Duration kMemory = std::chrono::minutes(1);

// The programs of one user are not told what another's kernels are called.
std::string shared_text(DeviceId device, uint32_t cuda_error) {
  return stringf("another program's kernel %s (%u) on device %lu, whose programs share their faults",
                 deed_of(cuda_error), cuda_error, static_cast<unsigned long>(device.value));
}

}  // namespace

bool SharedFaults::may_be_served(const Session& session, const VirtualDevice& device) const {
  const DeviceState& on = shared_.registry.devices[device.task->device.value];
  const Lessee who{session.id, device.index};
  if (on.health == Health::kFaulted) return false;
  if (on.on_trial.contains(who)) return cases_.at(on.id).trials.at(who).leaving == TimePoint{} && trials_may_begin(on);
  // Under MPS all others are served beside the trials, while it is started anew only outside of it (take_warm).
  return workers_.under_mps(on.id) ? on.health == Health::kTrial || !workers_.recovering(on.id)
                                   : on.health == Health::kHealthy && !workers_.recovering(on.id);
}

// Under MPS a fault that comes again outside of it keeps contexts from being made for as long as the driver looks into
// it: 0.2 to 0.9 s (docs/results/2026-11-28-gpu-second.md).
bool SharedFaults::trials_may_begin(const DeviceState& on) const {
  const bool waits = workers_.under_mps(on.id) && makes_way_for_trials(shared_.registry, on);
  return !waits || shared_.now() - cases_.at(on.id).judged >= kTogether;
}

// Nobody else's work can have been the cause: nobody is bound there, but for those that have faulted and do nothing
// more, and nobody was a moment ago, unless all had to leave for a trial.
bool SharedFaults::is_alone(const Worker& worker, const Lessee& who) {
  const DeviceState& on = device_of(worker.device);
  const bool is_tried = on.on_trial.contains(who);
  if (!is_tried && shared_.now() - on.last_left < kLateFault) return false;
  const auto& workers = shared_.registry.workers;
  return std::none_of(workers.begin(), workers.end(), [&](const auto& each) {
    const Worker& other = each.second;
    if (other.id == worker.id || other.device != worker.device || !other.last_fault.empty()) return false;
    if (other.outside_mps()) return false;
    const bool leaves = other.state == Worker::State::kKept || other.state == Worker::State::kLeaving;
    return other.state == Worker::State::kBound || (leaves && !is_tried);
  });
}

// ---- A fault ----

void SharedFaults::reported(Worker& worker, const protocol::WorkerFault& fault) {
  const auto [session, device] = shared_.registry.served_by(worker);
  const Report report{fault.cuda_error, protocol::get_text(fault.text)};
  const DeviceId id = worker.device;
  const Lessee who = session ? Lessee{session->id, device->index} : Lessee{};
  const bool recovering = workers_.recovering(id);
  if (session && !session->ending && !recovering && is_alone(worker, who)) return convict(worker, *session, report);
  if (session) cases_[id].reports[who] = report;
  if (!recovering)
    (void)workers_.recover(id, {shared_text(id, fault.cuda_error), fault.cuda_error, true, who, report.text});
}

// A software device serves on. Under MPS its server admits nobody while the client that has faulted is left.
void SharedFaults::convict(Worker& worker, Session& session, const Report& report) {
  const DeviceId id = worker.device;
  shared_.log->warn("session {} was alone on device {}: the fault is its own", session.id.value, id.value);
  if (workers_.under_mps(id)) {
    events_->fail_session(session, report.cuda_error, report.text);
    (void)workers_.recover(id, {shared_text(id, report.cuda_error), report.cuda_error, false, {}, {}});
    return;
  }
  protocol::DeviceFault message{report.cuda_error};
  protocol::set_text(message.text, report.text);
  worker.last_fault = report.text;
  if (worker.connection) worker.connection->send(message);
  const Lessee who{session.id, worker.virtual_device};
  if (device_of(id).on_trial.contains(who)) end_trial(id, who, true);
}

// Known before a GPU's server notices: programs that come in the meantime wait until it serves again, and do not fail.
void SharedFaults::worker_died(Worker& worker, const VirtualDevice& device) {
  worker.died = true;
  if (!device.control || !device.control->log().at_work() || worker.outside_mps()) return;
  if (device_of(worker.device).on_trial.contains({worker.session, worker.virtual_device})) return;  // it was alone
  (void)workers_.recover(worker.device, {"another program's worker ended in the middle of its work; on a device whose "
                                         "programs share their faults that is a fault of every program",
                                         kCudaIllegalAddress});
}

// Before anybody is served there.
void SharedFaults::restore(DeviceId device, const SharedFault& fault) {
  if (!workers_.recover(device, fault)) return shared_.vault.withdraw(NoteKind::kFault, device.value);
  faulted(device, fault);
}

void SharedFaults::faulted(DeviceId id, const SharedFault& fault) {
  Case& of = cases_[id];
  of.fault = fault;
  of.left.clear();
  if (!workers_.under_mps(id)) {  // else they are tried where the fault does not reach
    of.trials.clear();
    device_of(id).on_trial.clear();
  }
  if (!fault.own_text.empty()) of.reports[fault.origin] = {fault.cuda_error, fault.own_text};
  device_of(id).health = Health::kFaulted;
  device_of(id).tried.clear();
  device_of(id).last_shared_fault = shared_.now();
  for (const auto& [worker_id, worker] : shared_.registry.workers) {
    const bool stayed = worker.state == Worker::State::kLeaving && worker.kept_since != TimePoint{};
    if (worker.device == id && stayed) of.stayed.insert({worker.session, worker.virtual_device});
  }
}

// ---- Judging ----

void SharedFaults::left(DeviceId id) {
  if (device_of(id).health == Health::kFaulted) judge_all(id);
}

// Under MPS clients that do not end are judged as they are.
void SharedFaults::cleared(DeviceId id) {
  if (device_of(id).health == Health::kFaulted) return judge_all(id);
  if (device_of(id).health == Health::kTrial) try_next(id);
}

void SharedFaults::judge_all(DeviceId id) {
  Case& of = cases_[id];
  device_of(id).expected_outside = 0;
  for (auto& [session_id, session] : shared_.registry.sessions) {
    for (VirtualDevice& device : session.devices) {
      if (device.task && device.control && device.task->device == id && has_device(device.task->state))
        judge(id, session, device);
    }
  }
  for (const Lessee& who : of.stayed) judge_stayed(of, who);
  std::sort(of.left.begin(), of.left.end(), [](const Suspect& a, const Suspect& b) {
    return std::pair(a.arrived, a.who) < std::pair(b.arrived, b.who);
  });
  device_of(id).health = Health::kTrial;
  of.judged = shared_.now();
  of.together = shared_.loop.after(kTogether, [this, id] { shared_.events.post(ExecutorWanted{id}); });
  try_next(id);
}

void SharedFaults::judge(DeviceId id, Session& session, VirtualDevice& device) {
  const protocol::LogState log = device.control->log();
  Case& of = cases_[id];
  const Lessee who{session.id, device.index};
  if (session.failed || session.ending || log.task != device.task->serial || of.trials.contains(who)) return;
  if (device.worker && device.worker->outside_mps()) return;  // the fault was none of its
  const std::string obstacle = device.worker ? "its worker does not end" : present_obstacle(device);
  if (!obstacle.empty()) return fail(session, device, of, "the program's device memory is lost, because " + obstacle);
  if (!log.at_work() || !of.fault.kernel) return;
  if (suspected_too_often(id, who))
    return fail(
        session, device, of,
        stringf("the program was at work at %zu such faults within a minute, and nobody fails alone", kMostSuspicions));
  of.left.push_back({who, device.task->serial, std::max(log.handed_over, log.affected), device.task->arrived});
}

// Between two tasks.
void SharedFaults::judge_stayed(Case& of, const Lessee& who) {
  const auto [session, device] = shared_.registry.find_device(who);
  if (session && !session->failed && !session->ending && keeps_variables(*device))
    fail(*session, *device, of, "what the program's modules had in their variables was in the worker that was ended");
}

// With its own error where its own device call told of one: it may be the one whose fault it was.
void SharedFaults::fail(Session& session, const VirtualDevice& device, Case& of, const std::string& why) {
  const bool at_work = device.control->log().at_work();
  of.found |= at_work;
  const auto own = of.reports.find({session.id, device.index});
  if (own != of.reports.end())
    return events_->fail_session(
        session, own->second.cuda_error,
        own->second.text + "; it may be another program's fault on the same device, but " + why);
  const uint32_t code = at_work && of.fault.cuda_error != 0 ? of.fault.cuda_error : kCudaMpsClientTerminated;
  events_->fail_session(session, code, of.fault.text + "; " + why);
}

bool SharedFaults::suspected_too_often(DeviceId id, const Lessee& who) {
  const TimePoint now = shared_.now();
  std::erase_if(suspicions_, [&](const auto& each) { return now - each.second.back() > kMemory; });
  std::deque<TimePoint>& times = suspicions_[{id, who}];
  while (!times.empty() && now - times.front() > kMemory) times.pop_front();
  times.push_back(now);
  return times.size() >= kMostSuspicions;
}

// ---- Trial ----

// Whoever may be tried now; where nobody is left, the device serves everybody again.
void SharedFaults::try_next(DeviceId id) {
  Case& of = cases_[id];
  const bool apart = workers_.under_mps(id);
  for (; !of.left.empty() && (apart || of.trials.empty()); of.left.pop_front()) {
    const Suspect& next = of.left.front();
    const auto [session, device] = shared_.registry.find_device(next.who);
    const bool waits = session && !session->failed && !session->ending && device->task &&
                       device->task->serial == next.serial && awaits_executor(device->task->state);
    if (!waits) continue;
    of.trials[next.who] = {next, {}, {}};
    device_of(id).on_trial.insert(next.who);
    shared_.log->warn("device {}: session {} is tried alone, {} others are left to try", id.value, session->id.value,
                      of.left.size() - 1);
  }
  if (of.trials.empty() && !workers_.recovering(id)) return healthy(id);
  shared_.events.post(ExecutorWanted{id});
  if (!of.trials.empty()) look_later(id);
}

void SharedFaults::healthy(DeviceId id) {
  device_of(id).health = Health::kHealthy;
  if (cases_.at(id).found) std::erase_if(suspicions_, [&](const auto& each) { return each.first.first == id; });
  cases_.erase(id);
  shared_.vault.withdraw(NoteKind::kFault, id.value);
  shared_.log->warn("device {} serves everybody again", id.value);
  shared_.events.post(ExecutorWanted{id});
}

void SharedFaults::look_later(DeviceId id) {
  cases_.at(id).timer = shared_.loop.after(kTrialLook, [this, id] { shared_.events.post(TrialDue{id}); });
}

void SharedFaults::end_trial(DeviceId id, const Lessee& who, bool guilty) {
  cases_.at(id).found |= guilty;
  cases_.at(id).trials.erase(who);
  device_of(id).on_trial.erase(who);
  device_of(id).tried.insert(who);
  try_next(id);
}

void SharedFaults::trial_due(DeviceId id) {
  if (device_of(id).health != Health::kTrial) return;
  std::vector<std::pair<Lessee, bool>> ended;
  for (auto& [who, trial] : cases_.at(id).trials) {
    const Course course = look(id, trial);
    if (course != Course::kGoesOn) ended.emplace_back(who, course == Course::kGuilty);
  }
  if (ended.empty()) return look_later(id);
  for (const auto& [who, guilty] : ended) end_trial(id, who, guilty);
}

SharedFaults::Course SharedFaults::look(DeviceId id, Trial& trial) {
  const TimePoint now = shared_.now();
  const auto [session, device] = shared_.registry.find_device(trial.suspect.who);
  if (!session) return Course::kOver;
  const bool goes_on = !session->failed && !session->ending && device->task &&
                       device->task->serial == trial.suspect.serial && device->task->state != TaskState::kSuspended;
  if (!device->worker) return goes_on && trial.leaving == TimePoint{} ? Course::kGoesOn : Course::kOver;
  if (trial.served == TimePoint{}) trial.served = now;
  if (trial.leaving == TimePoint{} && goes_on) return look_at_work(id, trial, *session, *device);
  const bool stays = goes_on && !lasting_obstacle(*device).empty();
  const bool for_long = now - std::max(trial.served, trial.leaving) > kLongestTrial;
  return stays || for_long ? Course::kOver : Course::kGoesOn;
}

SharedFaults::Course SharedFaults::look_at_work(DeviceId id, Trial& trial, Session& session, VirtualDevice& device) {
  const bool for_long = shared_.now() - trial.served > kLongestTrial;
  Worker& worker = *device.worker;
  if (!worker.last_fault.empty()) return Course::kGuilty;
  // A fault of its own stands in the ring before its worker's word of it is here.
  const bool has_faulted = device.ring && device.ring->header().fault.load(std::memory_order_acquire) != 0;
  const protocol::LogState log = device.control->log();
  if (!for_long && (has_faulted || std::max(log.completed, log.done) < trial.suspect.until)) return Course::kGoesOn;
  shared_.log->warn("device {}: session {} has {} alone", id.value, session.id.value,
                    for_long ? "run for long without a fault" : "done its work without a fault");
  const bool stays = cases_.at(id).left.empty() || worker.outside_mps();
  if (stays || !let_go(worker, *device.task)) return Course::kOver;
  trial.leaving = shared_.now();
  return Course::kGoesOn;
}

// For the rest of its program's life: what it does once it will do again.
void SharedFaults::needs_apart(const Worker& worker, const protocol::NeedsApart& said) {
  const auto [session, device] = shared_.registry.served_by(worker);
  if (!session || !device->task || device->task->serial != said.serial || device->apart) return;
  device->apart = true;
  shared_.log->info(
      "session {} (process {}, {}) goes on outside of MPS on device {}: not all of its work can be run again",
      session->id.value, session->pid, session->program, worker.device.value);
  shared_.events.post(ExecutorWanted{worker.device});
}

void SharedFaults::call_away(DeviceId id) {
  if (!workers_.under_mps(id) || workers_.recovering(id)) return;
  auto& workers = shared_.registry.workers;
  std::map<Worker::Kind, size_t> ready;
  for (const auto& [worker_id, worker] : workers) {
    if (worker.device == id && worker.state == Worker::State::kWarm) ++ready[worker.kind];
  }
  for (auto& [worker_id, worker] : workers) {
    const auto kind = workers_.kind_to_move_to(worker);
    if (!kind) continue;
    size_t& left = ready[*kind];
    const Task& task = *shared_.registry.served_by(worker).second->task;
    if (!worker.called_away && left > 0) worker.called_away = let_go(worker, task);
    left -= worker.called_away && left > 0 ? 1 : 0;
  }
}

// It goes on in another worker: behind those that are left to try, or under MPS, or outside of it.
bool SharedFaults::let_go(Worker& worker, const Task& task) {
  if (!worker.connection || task.state != TaskState::kRunning) return false;
  worker.connection->send(protocol::Suspend{task.serial});
  return true;
}

}  // namespace heddle::daemon
