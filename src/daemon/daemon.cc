#include "daemon/daemon.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "daemon/batch_sms.h"
#include "daemon/cuda_codes.h"
#include "daemon/gpus.h"
#include "daemon/mps_clients.h"
#include "daemon/mps_mode.h"
#include "daemon/spawn.h"
#include "daemon/worker_users.h"
#include "policy/dispatch/table.h"
#include "policy/learning.h"
#include "policy/placement/table.h"
#include "policy/record/recorded_dispatch.h"

namespace heddle::daemon {
namespace {

constexpr Duration kAcceptPause = std::chrono::milliseconds(100);  // when there is no descriptor left
constexpr int kAcceptsATurn = 16;  // a flood of connections is no reason to keep the others waiting
constexpr Duration kEndLook = std::chrono::milliseconds(10);
constexpr Duration kEndPatience = std::chrono::seconds(3);  // beyond the workers' own

// Space for a software device's board, which its first worker lays out; only the pages that it touches cost memory. Two
// cache lines for each slot of the device is what a board keeps, and a table of its workers: ample for both.
Bytes board_bytes(const DeviceModel& model) {
  constexpr uint64_t kFixed = 4 * kMiB, kSlot = 256;
  return Bytes{round_up(kFixed + uint64_t{model.sms} * model.max_blocks_per_sm * kSlot, 2 * kMiB)};
}

std::string directory_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// Only workers write there, under the user that they run as.
Status make_cache(const std::string& directory, const Config& config) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno(-1, "cannot make '%s'", directory.c_str());
  const passwd* user = config.worker_user.empty() ? nullptr : ::getpwnam(config.worker_user.c_str());
  const uid_t uid = user ? user->pw_uid : config.worker_uids.first;
  if (uid != 0 && ::geteuid() == 0 && ::lchown(directory.c_str(), uid, user ? user->pw_gid : uid) != 0)
    return fail_errno(-1, "cannot give '%s' to user %u", directory.c_str(), uid);
  return {};
}

// The GPUs of a driver that is named by hand are not this machine's: other heddleds, with other drivers, have the same.
std::string lock_directory(const Config& config) {
  return std::getenv("HEDDLE_CUDA_LIBRARY") ? std::string() : config.gpu_locks;
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::create(Options options, protocol::Socket vault, const Clock& clock) {
  auto loop = EventLoop::create(clock);
  if (!loop) return tl::unexpected(std::move(loop).error());
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options), std::move(*loop), clock));
  HEDDLE_TRY(daemon->start(std::move(vault)));
  return daemon;
}

Daemon::Daemon(Options options, std::unique_ptr<EventLoop> loop, const Clock& clock)
    : options_(std::move(options)),
      loop_(std::move(loop)),
      log_(logger("heddled")),
      trace_(options_.config.trace_events),
      history_(*loop_, log_),
      vault_(*loop_, options_.start_vault, log_),
      ids_(vault_),
      events_([this] { loop_->defer([this] { turn_->run(); }); }),
      shared_{options_.config, options_.places, clock, *loop_, events_, vault_, ids_, registry_, trace_, log_},
      mps_({Mps::find_control(), directory_of(options_.places.control), options_.worker_output}),
      gpu_locks_(lock_directory(options_.config)),
      keepers_(*loop_, events_, options_.keeper_program, options_.worker_output),
      copies_(shared_, keepers_),
      swap_space_(*loop_, clock, keepers_, shared_.config.swap, registry_),
      segments_(shared_, keepers_, copies_, swap_space_),
      swaps_(shared_, keepers_, copies_, swap_space_, segments_),
      workers_storage_(
          shared_,
          {options_.worker_program, options_.worker_output, directory_of(options_.places.control) + "/cuda-cache"},
          mps_),
      leases_(shared_),
      executor_(shared_, workers_storage_, segments_, leases_) {}

Daemon::~Daemon() = default;

Status Daemon::start(protocol::Socket vault) {
  auto items = vault_.open(std::move(vault));
  if (!items) return tl::unexpected(std::move(items).error());
  HEDDLE_TRY(check_worker_users(shared_.config));
  HEDDLE_TRY(add_machine_gpus(*items));
  for (const DeviceConfig& device : shared_.config.devices) {
    DeviceState& state = registry_.devices.emplace_back();
    state.id = DeviceId{registry_.devices.size() - 1};
    state.config = device;
  }
  TakenOver restored = restore(shared_, std::move(*items));
  if (!restored.policy.empty()) shared_.config.policy = restored.policy;
  // Whoever takes sessions over goes on without it: what it tells of is less than what they hold.
  if (Status opened = open_input_log(); !opened) {
    if (restored.starts == 0) return opened;
    log_->error("{}", opened.error().text);
  }
  if (const auto dispatch = policy::find_dispatch(shared_.config.dispatch.policy); dispatch && (*dispatch)->deadline)
    deadlines_ = std::make_unique<policy::DeadlineFamily>((*dispatch)->deadline, device_specs());
  // Whoever started this process takes the first deposit as its word that it runs: what can be wrong comes before.
  bool grants_at_malloc = false;
  auto scheduler = make_scheduler(shared_.config.policy, grants_at_malloc);
  if (!scheduler) return tl::unexpected(std::move(scheduler).error());
  restore_history(**scheduler);
  starts_ = restored.starts + 1;
  deposit_life();
  HEDDLE_TRY(make_boards());
  HEDDLE_TRY(start_gpus());
  HEDDLE_TRY(check_batch_sms(shared_, mps_));

  const auto make_dispatch = [this, next = uint64_t{0}]() mutable {
    const std::string& policy = shared_.config.dispatch.policy;
    const DeviceId device{next++};
    return deadlines_ ? deadlines_->dispatch(device)
                      : policy::recorded(*policy::make_dispatch(policy), policy, device, input_log_.get());
  };
  leases_.open(make_dispatch, deadlines_.get());
  tasks_ =
      std::make_unique<Tasks>(shared_, executor_, segments_, leases_, swaps_, std::move(*scheduler), grants_at_malloc);
  outside_ = std::make_unique<OutsideMemory>(shared_, *tasks_, segments_);
  executor_.connect(*tasks_);
  workers_->connect([this](DeviceId device) { return tasks_->scheduler().pool().free(device); });
  sessions_ = std::make_unique<Sessions>(shared_, *tasks_, segments_);
  requests_ = std::make_unique<Requests>(shared_, *tasks_, executor_, segments_, copies_);
  commands_ = std::make_unique<Commands>(
      shared_, *sessions_, *tasks_, executor_, *workers_, leases_,
      Commands::Control{[this] { shut_down(); }, [this](const std::string& policy) { return set_policy(policy); },
                        [this] { return static_cast<uint32_t>(starts_ - 1); }});
  clients_ = std::make_unique<Clients>(shared_, *sessions_, *requests_, *commands_, *tasks_);
  turn_ = std::make_unique<Turn>(shared_, *tasks_, executor_, *workers_, segments_, copies_, swaps_, *outside_, leases_,
                                 *sessions_, *requests_, *clients_, history_);

  control_ = std::move(restored.control);
  worker_ = std::move(restored.worker);
  if (!control_ || !worker_) return fail(ErrorCode::kProtocol, "the vault gave no listening sockets");
  adopt(std::move(restored));
  HEDDLE_TRY(listen(control_, control_watch_, &Daemon::accept_client));
  HEDDLE_TRY(listen(worker_, worker_watch_, &Daemon::accept_worker));
  for (const DeviceState& device : registry_.devices) workers_->refill(device.id);
  log_->info("heddled {} listens at {}: {} devices, policy {}, {} sessions from before", HEDDLE_VERSION,
             shared_.places.control, registry_.devices.size(), shared_.config.policy, registry_.sessions.size());
  warn_of_settings();
  return {};
}

// Both may be meant, and one of them comes to less than its name says.
void Daemon::warn_of_settings() const {
  const auto revocation =
      deadlines_ && !registry_.devices.empty() ? deadlines_->revocation(registry_.devices.front().id) : std::nullopt;
  if (revocation && revocation->terminates && shared_.config.durability.level == DurabilityConfig::Level::kOff)
    log_->warn(
        "dispatch policy {} terminates no worker with work under way while [durability] level is \"off\": \"auto\", "
        "\"long\" or \"full\" would let that work be run again",
        shared_.config.dispatch.policy);
}

// The GPUs that the configuration asks for; where it names no devices at all, whatever there is.
Status Daemon::add_machine_gpus(std::vector<RestoredItem>& items) {
  if (!options_.list_gpus || !wants_gpus(shared_.config)) return {};
  const auto list = gpu_list(items);
  const auto found = list ? parse_gpu_list(*list) : tl::unexpected(list.error());
  Status added = found ? add_gpus(shared_.config, *found) : tl::unexpected(found.error());
  if (added || !shared_.config.gpus.empty()) return added;
  log_->info("the pool consists of software devices: {}", added.error().text);
  return {};
}

// Looked for once: while programs hold the GPUs' memory, neither what is free nor what a context costs can be measured.
Result<std::string> Daemon::gpu_list(std::vector<RestoredItem>& items) {
  for (RestoredItem& item : items) {
    if (item.kind != NoteKind::kGpus) continue;
    const auto note = read_note<GpusNote>(item.note);
    if (!note) return tl::unexpected(note.error());
    gpu_list_ = std::move(item.descriptor);
    const auto memory = map_shared(gpu_list_, Bytes{note->length}, false);
    if (!memory) return tl::unexpected(memory.error());
    return std::string(static_cast<const char*>(memory->data()), note->length);
  }
  auto list = options_.list_gpus();
  if (!list) return list;
  auto memory = create_memfd("heddle-gpus", Bytes{list->size()});
  if (!memory) return tl::unexpected(std::move(memory).error());
  if (::pwrite(memory->get(), list->data(), list->size(), 0) != static_cast<ssize_t>(list->size()))
    return fail_errno(-1, "cannot keep the list of GPUs");
  gpu_list_ = std::move(*memory);
  vault_.deposit(NoteKind::kGpus, 0, write_note(GpusNote{list->size()}), gpu_list_.get());
  return list;
}

void Daemon::deposit_life() {
  LifeNote note{};
  note.starts = starts_;
  protocol::set_text(note.policy, shared_.config.policy);
  vault_.deposit(NoteKind::kLife, 0, write_note(note), -1);
}

Status Daemon::make_boards() {
  for (DeviceState& device : registry_.devices) {
    if (device.config.model.kind == DeviceKind::kCuda) {
      // What was promised before a restart counts then, not what is free beside it.
      BoardNote note{};
      note.bytes = device.config.model.memory_bytes;
      protocol::set_text(note.model, device.config.model.model);
      vault_.deposit(NoteKind::kBoard, device.id.value, write_note(note), -1);
      continue;
    }
    if (device.board) continue;
    const Bytes size = board_bytes(device.config.model);
    auto board = create_memfd("heddle-board", size);
    if (!board) return tl::unexpected(std::move(board).error());
    device.board = std::move(*board);
    BoardNote note{};
    note.bytes = size.value;
    protocol::set_text(note.model, device.config.model.model);
    vault_.deposit(NoteKind::kBoard, device.id.value, write_note(note), device.board.get());
  }
  return {};
}

// Keepers build their contexts while nobody waits for memory yet.
Status Daemon::start_gpus() {
  std::vector<std::string> gpus;
  for (const DeviceState& device : registry_.devices) {
    if (device.config.model.kind != DeviceKind::kCuda) continue;
    HEDDLE_TRY(gpu_locks_.take(device.config.uuid));
    gpus.push_back(device.config.uuid);
  }
  keepers_.set_gpus(std::move(gpus));
  for (const DeviceState& state : registry_.devices) {
    const DeviceConfig& device = state.config;
    if (device.model.kind != DeviceKind::kCuda) continue;
    HEDDLE_TRY(make_cache(directory_of(shared_.places.control) + "/cuda-cache", shared_.config));
    HEDDLE_TRY(keepers_.start(state.id, device.uuid));
    HEDDLE_TRY(start_mps(shared_, mps_, state.id));
  }
  return {};
}

// Sessions first, then the workers that serve them, then the ledger; who has ended meanwhile is found by his pidfd.
void Daemon::adopt(TakenOver restored) {
  for (Worker& worker : restored.workers) executor_.adopt(std::move(worker));
  tasks_->readopt();
  for (const auto& [device, fault] : restored.faults) executor_.shared_faults().restore(device, fault);
  for (auto& [id, session] : registry_.sessions) sessions_->watch(session);
  for (const SessionId id : restored.broken) {
    Session* session = registry_.find_session(id);
    if (!session) continue;
    log_->error(
        "session {} of process {} ends: what heddled kept of it, its ring first of all, is lost or of another "
        "version of heddled; the program must be started again",
        id.value, session->pid);
    sessions_->end(*session);
  }
  // Whoever opened a job has lost its connection; what has no session by then is nobody's.
  job_grace_ = loop_->after(shared_.config.reconnect_grace, [this] {
    std::vector<JobId> jobs;
    for (const auto& [id, job] : registry_.jobs) {
      if (!job.opener) jobs.push_back(id);
    }
    for (const JobId id : jobs) sessions_->abandon(id);
  });
}

Status Daemon::listen(Fd& listener, EventLoop::Watch& watch, void (Daemon::*accept)(protocol::Socket)) {
  const int flags = ::fcntl(listener.get(), F_GETFL);
  if (flags < 0 || ::fcntl(listener.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return fail_errno(-1, "cannot make a listening socket non-blocking");
  auto watching = loop_->watch(listener.get(), EPOLLIN,
                               [this, &listener, &watch, accept](uint32_t) { accept_all(listener, watch, accept); });
  if (!watching) return tl::unexpected(std::move(watching).error());
  watch = std::move(*watching);
  return {};
}

void Daemon::accept_all(const Fd& listener, EventLoop::Watch& watch, void (Daemon::*accept)(protocol::Socket)) {
  for (int accepted = 0; accepted < kAcceptsATurn; ++accepted) {
    Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket) {
      (this->*accept)(protocol::Socket(std::move(socket)));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log_->error("no descriptor is left for another connection: waiting");
      watch.set_events(0);
      accept_pause_ = loop_->after(kAcceptPause, [this] {
        control_watch_.set_events(EPOLLIN);
        worker_watch_.set_events(EPOLLIN);
      });
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

Status Daemon::open_input_log() {
  if (shared_.config.input_log.empty()) return {};
  const auto ended = [this](const Error& error) {
    log_->log(error.code == ErrorCode::kLimitExceeded ? spdlog::level::warn : spdlog::level::err, "{}", error.text);
  };
  auto log = InputLogFile::open(shared_.config.input_log, shared_.config.input_log_limit, ended);
  if (!log) return tl::unexpected(std::move(log).error());
  input_log_ = std::move(*log);
  return {};
}

void Daemon::restore_history(policy::RecordedScheduler& scheduler) {
  const std::string& path = shared_.config.history == "auto" ? shared_.places.history : shared_.config.history;
  const auto ask = [this] { return policy::Learning::history(tasks_->scheduler()); };
  for (const policy::KnownApp& app : history_.open(path, ask)) scheduler.remember(app);
}

std::vector<policy::DeviceSpec> Daemon::device_specs() const {
  std::vector<DeviceModel> models;
  for (const DeviceState& device : registry_.devices) models.push_back(device.config.model);
  std::vector<policy::DeviceSpec> specs = policy::specs_of(models);
  for (policy::DeviceSpec& spec : specs) {
    const bool all_through_mps = registry_.devices[spec.id.value].config.mps == MpsMode::kOn && mps_.serves(spec.id);
    if (all_through_mps) spec.max_clients = kMostMpsClients;
  }
  return specs;
}

Result<Tasks::Scheduler> Daemon::make_scheduler(const std::string& policy, bool& grants_at_malloc) const {
  auto placement = policy::make_placement(policy);
  if (!placement) return tl::unexpected(std::move(placement).error());
  grants_at_malloc = (*placement)->memory_oblivious();
  const policy::Options options{shared_.config.age_limit, shared_.config.limits.device_memory_per_user,
                                grants_at_malloc ? nullptr : deadlines_.get(), !grants_at_malloc};
  return std::make_unique<policy::RecordedScheduler>(policy, std::move(*placement), device_specs(), options,
                                                     input_log_.get());
}

Status Daemon::set_policy(const std::string& policy) {
  if (!registry_.sessions.empty())
    return fail(ErrorCode::kLimitExceeded, "the policy changes only while nothing runs: %zu sessions are open",
                registry_.sessions.size());
  bool grants_at_malloc = false;
  auto scheduler = make_scheduler(policy, grants_at_malloc);
  if (!scheduler) return tl::unexpected(std::move(scheduler).error());
  tasks_->set_scheduler(std::move(*scheduler), grants_at_malloc);
  shared_.config.policy = policy;
  history_.look();
  deposit_life();
  log_->info("policy {}", policy);
  return {};
}

void Daemon::shut_down() {
  if (ending_) return;
  ending_ = true;
  history_.finish();
  log_->info("heddled is ending: {} sessions, {} workers", registry_.sessions.size(), registry_.workers.size());
  clients_->stop();
  workers_->stop();
  control_watch_.reset();
  worker_watch_.reset();
  ::unlink(shared_.places.control.c_str());
  ::unlink(shared_.places.worker.c_str());
  for (auto& [id, session] : registry_.sessions)
    tasks_->fail_session(session, kCudaDevicesUnavailable, "heddled was shut down");
  // Those that serve a session have been killed with it, and leave it when they are gone.
  for (auto& [id, worker] : registry_.workers)
    worker.state == Worker::State::kBound ? workers_->kill(worker) : workers_->retire(worker);
  end_by_ = shared_.now() + shared_.config.worker_exit_grace + kEndPatience;
  end_when_empty();
}

void Daemon::end_when_empty() {
  if (!registry_.workers.empty() && shared_.now() < end_by_) {
    end_timer_ = loop_->after(kEndLook, [this] { end_when_empty(); });
    return;
  }
  mps_.end();
  vault_.shut_down();
  log_->info("heddled has ended");
  loop_->stop();
}

}  // namespace heddle::daemon
