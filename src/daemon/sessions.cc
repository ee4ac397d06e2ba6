#include "daemon/sessions.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "daemon/batch_sms.h"
#include "daemon/cuda_codes.h"
#include "daemon/resumable.h"
#include "daemon/session_limits.h"
#include "daemon/spawn.h"
#include "daemon/task_swaps.h"
#include "daemon/tenant.h"
#include "daemon/usage.h"
#include "daemon/windows.h"

namespace heddle::daemon {
namespace {

using protocol::Hello;
using protocol::PeerCredentials;

// The largest that one virtual device of the model can hold beside a worker's context.
Bytes largest_of(const std::vector<DeviceState>& devices, const std::string& model) {
  uint64_t most = 0;
  for (const DeviceState& device : devices) {
    if (device.config.model.model == model)
      most = std::max(most, device.config.model.memory_bytes - device.config.model.context_bytes);
  }
  return Bytes{most};
}

}  // namespace

Result<Session*> Sessions::hello(const Hello& hello, Connection& connection, const PeerCredentials& peer) {
  if (hello.magic != protocol::kRingMagic || hello.version != protocol::kProtocolVersion)
    return fail(
        ErrorCode::kProtocol,
        "this heddled speaks protocol version %u, the program's runtime version %u: install both from one release",
        protocol::kProtocolVersion, hello.version);
  if (hello.resume_session != 0) return resume(hello, connection, peer);
  // Its forerunner may be the only session of that job.
  joined_ = JobId{hello.job};
  auto session = open(hello, connection, peer);
  drop_if_empty(std::exchange(joined_, JobId{}));
  return session;
}

Result<Session*> Sessions::open(const Hello& hello, Connection& connection, const PeerCredentials& peer) {
  end_forerunners(peer.pid);
  HEDDLE_TRY(check_limits(peer.uid));
  auto process = connection.socket().peer_pidfd();
  if (!process) return tl::unexpected(std::move(process).error());
  if (has_ended(*process)) return fail(ErrorCode::kPeerDied, "process %d has ended", peer.pid);
  auto job = job_of(hello, peer);
  if (!job) return tl::unexpected(std::move(job).error());

  Session session;
  session.id = SessionId{shared_.ids.next()};
  session.job = (*job)->id;
  session.secret = random_secret();
  session.uid = peer.uid;
  session.pid = peer.pid;
  session.program = protocol::get_text(hello.program);
  session.process = std::move(*process);
  session.opened = shared_.now();
  session.model = shared_.registry.devices.front().config.model.model;
  session.connection = &connection;
  session.budget = largest_of(shared_.registry.devices, session.model);
  if ((*job)->budget.value != 0) session.budget = std::min(session.budget, (*job)->budget);
  const Bytes of_user = shared_.config.limits.device_memory_per_user;
  if (of_user.value != 0) session.budget = std::min(session.budget, of_user);
  const auto same_model = [&](const DeviceState& device) { return device.config.model.model == session.model; };
  const auto count = std::count_if(shared_.registry.devices.begin(), shared_.registry.devices.end(), same_model);
  session.seen_devices = static_cast<uint32_t>(std::min<size_t>(static_cast<size_t>(count), protocol::kMaxDevices));
  const uint32_t side_devices = std::min(session.seen_devices - 1, protocol::kMaxSideDevices);
  session.devices.resize(std::min(session.seen_devices + side_devices, protocol::kMaxDevices));
  for (size_t i = 0; i < session.devices.size(); ++i) session.devices[i].index = static_cast<uint32_t>(i);

  const SessionId id = session.id;
  Session& placed = shared_.registry.sessions.emplace(id, std::move(session)).first->second;
  (*job)->sessions.insert(id);
  segments_.deposit_session(placed);
  watch(placed);
  tasks_.session_opened(placed);
  shared_.log->info("session {} of job {}: process {}, user {}, {}", id.value, placed.job.value, placed.pid, placed.uid,
                    placed.program);
  return &placed;
}

Result<Session*> Sessions::resume(const Hello& hello, Connection& connection, const PeerCredentials& peer) {
  Session* session = shared_.registry.find_session(SessionId{hello.resume_session});
  if (!session || session->secret != hello.resume_secret || session->uid != peer.uid || session->pid != peer.pid ||
      session->ending)
    return fail(ErrorCode::kNotFound, "there is no session %lu to resume for process %d",
                static_cast<unsigned long>(hello.resume_session), peer.pid);
  if (session->connection) return fail(ErrorCode::kProtocol, "the session is connected already");
  session->connection = &connection;
  session->resumed = true;
  shared_.log->info("session {} is connected again", session->id.value);
  // What it had told of records that wait, it may have told nobody.
  for (VirtualDevice& device : session->devices) tasks_.follow_job(*session, device);
  return session;
}

// A program that executed another leaves its session behind, as does one whose greeting heddled's forerunner died of:
// same process, connection closed.
void Sessions::end_forerunners(pid_t pid) {
  std::vector<Session*> left;
  for (auto& [id, session] : shared_.registry.sessions) {
    const bool connected = session.connection && !session.connection->hung_up();
    if (session.pid == pid && !session.ending && !connected) left.push_back(&session);
  }
  for (Session* session : left) {
    shared_.log->info("session {}: process {} has become another program, or greets again", session->id.value, pid);
    end(*session);
  }
}

Status Sessions::check_limits(uid_t uid) const {
  const auto& sessions = shared_.registry.sessions;
  const auto own =
      std::count_if(sessions.begin(), sessions.end(), [&](const auto& each) { return each.second.uid == uid; });
  return may_open(shared_.config.limits, sessions.size(), static_cast<size_t>(own), uid);
}

Result<Job*> Sessions::job_of(const Hello& hello, const PeerCredentials& peer) {
  if (hello.job == 0) return open_job(protocol::get_text(hello.program), Bytes{}, {}, peer, nullptr);
  Job* job = shared_.registry.find_job(JobId{hello.job});
  // The same words for a wrong secret and another user's job: nobody learns which jobs there are.
  if (!job || job->secret != hello.job_secret || job->uid != peer.uid)
    return fail(ErrorCode::kPermission, "there is no job %lu that user %u may join: HEDDLE_JOB is wrong or out of date",
                static_cast<unsigned long>(hello.job), peer.uid);
  if (job->cancelled)
    return fail(ErrorCode::kCancelled, "job %lu was cancelled", static_cast<unsigned long>(hello.job));
  return job;
}

// A kernel of another device could not reach it there.
bool Sessions::managed_on_device(const protocol::Welcome& welcome) const {
  if (welcome.device_count != 1) return false;
  const bool is_gpu = welcome.devices[0].kind == DeviceKind::kCuda;
  const ManagedMemory wanted = shared_.config.managed_memory;
  return wanted == ManagedMemory::kDevice || (wanted == ManagedMemory::kAuto && is_gpu);
}

protocol::Welcome Sessions::welcome(const Session& session) const {
  protocol::Welcome welcome;
  welcome.grants_at_malloc = tasks_.grants_at_malloc();
  welcome.session = session.id.value;
  welcome.secret = session.secret;
  welcome.budget_bytes = session.budget.value;
  welcome.segment_limit = shared_.config.limits.segments_per_session;
  const auto windows = offered_windows(shared_.config, shared_.registry);
  welcome.window_count = static_cast<uint32_t>(windows.size());
  std::copy(windows.begin(), windows.end(), welcome.windows);
  for (const DeviceState& device : shared_.registry.devices) {
    if (welcome.device_count == session.seen_devices) break;
    if (device.config.model.model != session.model) continue;
    DeviceModel& model = welcome.devices[welcome.device_count++] = device.config.model;
    if (has_batch_sms(shared_, session)) model.sms = batch_sms(shared_.config.dispatch, model);
  }
  welcome.managed_on_device = managed_on_device(welcome);
  if (!tasks_.scheduler().assigns_jobs())
    welcome.side_device_count = static_cast<uint32_t>(session.devices.size()) - session.seen_devices;
  return welcome;
}

void Sessions::watch(Session& session) {
  const SessionId id = session.id;
  auto watch = shared_.loop.watch(session.process.get(), EPOLLIN, [this, id](uint32_t) {
    if (Session* ended = shared_.registry.find_session(id)) ended->process_watch.reset();
    shared_.events.post(ProcessEnded{id});
  });
  if (watch) session.process_watch = std::move(*watch);
  host_times_.began(session);
}

void Sessions::process_ended(SessionId id) {
  Session* session = shared_.registry.find_session(id);
  if (!session) return;
  shared_.log->info("session {}: process {} has ended", id.value, session->pid);
  end(*session);
}

void Sessions::end(Session& session) {
  const SessionId id = session.id;
  host_times_.look(session);
  if (tasks_.end(session)) released(id);
}

void Sessions::released(SessionId id) {
  Session* session = shared_.registry.find_session(id);
  if (!session) return;
  while (!session->segments.empty()) segments_.remove(*session, session->segments.begin()->first);
  for (const Module& module : session->modules) shared_.vault.withdraw(NoteKind::kModule, module.key);
  for (const VirtualDevice& device : session->devices) {
    if (!device.ring) continue;
    shared_.vault.withdraw(NoteKind::kRing, device.ring_key);
    shared_.vault.withdraw(NoteKind::kControl, device.ring_key);
  }
  shared_.vault.withdraw(NoteKind::kSession, id.value);
  const JobId job = session->job;
  if (Job* owner = shared_.registry.find_job(job)) {
    owner->findings += findings_of(*session);
    add(owner->usage, usage_of(*session, shared_.now()));
    owner->sessions.erase(id);
  }
  shared_.log->info("session {} is over", id.value);
  shared_.registry.sessions.erase(id);
  drop_if_empty(job);
}

Result<Job*> Sessions::open_job(const std::string& name, Bytes budget, const policy::Tenant& tenant,
                                const PeerCredentials& peer, Connection* opener) {
  const auto& jobs = shared_.registry.jobs;
  const auto own =
      std::count_if(jobs.begin(), jobs.end(), [&](const auto& each) { return each.second.uid == peer.uid; });
  if (static_cast<size_t>(own) >= shared_.config.limits.jobs_per_user)
    return fail(ErrorCode::kLimitExceeded, "user %u has %ld jobs, and limits.jobs_per_user allows no more", peer.uid,
                static_cast<long>(own));
  HEDDLE_TRY(may_have(tenant, shared_.config.limits, shared_.registry, peer.uid));
  Job job;
  job.id = JobId{shared_.ids.next()};
  job.secret = random_secret();
  job.uid = peer.uid;
  job.name = name;
  job.budget = budget;
  job.tenant = tenant;
  job.opener = opener;
  Job& placed = shared_.registry.jobs.emplace(job.id, std::move(job)).first->second;
  deposit_job(placed);
  return &placed;
}

void Sessions::deposit_job(const Job& job) {
  JobNote note{};
  note.secret = job.secret;
  note.budget_bytes = job.budget.value;
  note.uid = job.uid;
  note.suspended = job.suspended ? 1 : 0;
  note.swap = job.swap ? 1 : 0;
  note.weight = job.tenant.weight;
  note.share = job.tenant.request;
  note.limit = job.tenant.limit;
  note.user_facing = job.tenant.kind == policy::JobClass::kUserFacing;
  note.slo_ns = job.tenant.slo.count();
  protocol::set_text(note.name, job.name);
  protocol::set_text(note.app, job.tenant.app);
  shared_.vault.deposit(NoteKind::kJob, job.id.value, write_note(note), -1);
}

void Sessions::abandon(JobId id) {
  if (Job* job = shared_.registry.find_job(id)) job->opener = nullptr;
  drop_if_empty(id);
}

void Sessions::drop_if_empty(JobId id) {
  const Job* job = shared_.registry.find_job(id);
  if (!job || job->opener || !job->sessions.empty() || id == joined_) return;
  shared_.vault.withdraw(NoteKind::kJob, id.value);
  shared_.registry.jobs.erase(id);
}

void Sessions::cancel(Job& job) {
  job.cancelled = true;
  shared_.log->info("job {} ({}) is cancelled", job.id.value, job.name);
  for (const SessionId id : job.sessions) {
    Session* session = shared_.registry.find_session(id);
    if (session) tasks_.fail_session(*session, kCudaDevicesUnavailable, "the job was cancelled");
  }
  if (!job.opener) return;
  protocol::Command event;
  const std::string text = "{\"event\":\"cancelled\"}";
  event.length = static_cast<uint32_t>(text.size());
  protocol::set_text(event.text, text);
  job.opener->send(event);
}

namespace {

unsigned long number(const Job& job) {
  return static_cast<unsigned long>(job.id.value);
}

// Why a task of the job's cannot go on in another worker; empty where all can.
std::string obstacle_to_suspend(Registry& registry, const Job& job) {
  for (const SessionId id : job.sessions) {
    const Session* session = registry.find_session(id);
    if (!session || session->failed || session->ending) continue;
    for (const VirtualDevice& device : session->devices) {
      if (!device.task || device.task->state != TaskState::kRunning) continue;
      const std::string obstacle = lasting_obstacle(device);
      if (!obstacle.empty())
        return stringf("%s (process %d) has a task that no other worker can go on with: %s", session->program.c_str(),
                       session->pid, obstacle.c_str());
    }
  }
  return "";
}

}  // namespace

Status Sessions::suspend(Job& job) {
  if (job.cancelled) return fail(ErrorCode::kInvalidArgument, "job %lu was cancelled", number(job));
  const std::string obstacle = obstacle_to_suspend(shared_.registry, job);
  if (!obstacle.empty())
    return fail(ErrorCode::kNotSupported, "job %lu cannot be suspended, and nothing of it was: %s", number(job),
                obstacle.c_str());
  job.suspended = true;
  job.not_suspended.clear();
  deposit_job(job);
  shared_.log->info("job {} ({}) is suspended", job.id.value, job.name);
  follow(job);
  return {};
}

Status Sessions::may_swap(const Job& job) {
  for (const SessionId id : job.sessions) {
    Session* session = shared_.registry.find_session(id);
    if (!session) continue;
    for (VirtualDevice& device : session->devices) {
      if (!device.task || is_swapped(device.task->state)) continue;
      if (const Status may = TaskSwaps(tasks_).may_swap(*session, device); !may)
        return fail(may.error().code, "the memory of job %lu cannot leave its device: %s", number(job),
                    may.error().text.c_str());
    }
  }
  return {};
}

void Sessions::swap(Job& job) {
  for (const SessionId id : job.sessions) {
    Session* session = shared_.registry.find_session(id);
    if (!session) continue;
    for (VirtualDevice& device : session->devices) {
      if (device.task) device.task->keeps_device = false;
    }
  }
  job.swap = true;
  job.not_swapped.clear();
  deposit_job(job);
  follow(job);
}

void Sessions::not_swapped(JobId id) {
  Job* job = shared_.registry.find_job(id);
  if (!job) return;
  job->swap = false;
  deposit_job(*job);
  shared_.log->warn("the memory of job {} ({}) stays on its device: {}", id.value, job->name, job->not_swapped);
}

Status Sessions::resume(Job& job) {
  if (job.cancelled) return fail(ErrorCode::kInvalidArgument, "job %lu was cancelled", number(job));
  if (!job.suspended)
    return fail(ErrorCode::kInvalidArgument, "job %lu is not suspended: 'heddle suspend %lu' does that", number(job),
                number(job));
  job.suspended = job.swap = false;
  job.not_swapped.clear();
  deposit_job(job);
  shared_.log->info("job {} ({}) is resumed", job.id.value, job.name);
  follow(job);
  return {};
}

void Sessions::not_suspended(JobId id) {
  const Job* job = shared_.registry.find_job(id);
  if (!job) return;
  deposit_job(*job);
  shared_.log->warn("job {} ({}) goes on, because it cannot be suspended: {}", id.value, job->name, job->not_suspended);
  follow(*job);
}

void Sessions::follow(const Job& job) {
  for (const SessionId id : std::set(job.sessions)) {
    Session* session = shared_.registry.find_session(id);
    if (!session) continue;
    for (VirtualDevice& device : session->devices) tasks_.follow_job(*session, device);
  }
  shared_.events.books_changed();
}

}  // namespace heddle::daemon
