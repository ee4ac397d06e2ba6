#include "daemon/workers.h"

#include <sys/epoll.h>

#include <algorithm>
#include <csignal>

#include "daemon/keepers.h"
#include "daemon/mps_clients.h"
#include "daemon/spawn.h"
#include "daemon/windows.h"
#include "daemon/worker_users.h"

namespace heddle::daemon {
namespace {

using protocol::MessageType;

constexpr Duration kFirstBackoff = std::chrono::milliseconds(100);
constexpr Duration kLongestBackoff = std::chrono::seconds(10);
constexpr size_t kMostStrangers = 256;  // connections on the worker socket that have not said who they are

// How a worker ends that its device did not want (protocol::kDeviceRefuses).
const std::string kRefused = stringf("exit status %d", protocol::kDeviceRefuses);

void deposit(VaultLink& vault, const Worker& worker) {
  WorkerNote note{};
  note.secret = worker.secret;
  note.session = worker.session.value;
  note.serial = worker.serial;
  note.device = static_cast<uint32_t>(worker.device.value);
  note.pid = static_cast<uint32_t>(worker.pid);
  note.virtual_device = worker.virtual_device;
  note.uid = worker.uid;
  note.terminating = worker.terminating ? 1 : 0;
  note.kind = static_cast<uint32_t>(worker.kind);
  vault.deposit(NoteKind::kWorker, worker.id.value, write_note(note), worker.process.get());
}

// The worker that has been kept for the longest time, of those that `may_end`; none where none may. Warm workers were
// never kept, so their kept_since is zero, and they come before all kept ones: they hold nothing of a program's.
template <typename MayEnd>
Worker* longest_kept(Registry& registry, MayEnd may_end) {
  Worker* longest = nullptr;
  for (auto& [id, worker] : registry.workers) {
    if (may_end(worker) && (!longest || worker.kept_since < longest->kept_since)) longest = &worker;
  }
  return longest;
}

}  // namespace

void note_terminating(Shared& shared, Worker& worker, bool terminating) {
  worker.terminating = terminating;
  deposit(shared.vault, worker);
  shared.loop.commit();
}

Duration start_backoff(uint32_t failures) {
  if (failures == 0) return Duration{};
  return std::min(kLongestBackoff, kFirstBackoff * (1u << std::min(failures - 1, 10u)));
}

Worker* Workers::take_warm(DeviceId device, std::pair<SessionId, uint32_t> whom) {
  const DeviceState& state = device_of(device);
  const Worker::Kind kind = kind_for(shared_, mps_, state, whom);
  size_t outside_ready = 0;
  Worker* stands_outside = nullptr;
  for (auto& [id, worker] : shared_.registry.workers) {
    if (worker.device != device || worker.state != Worker::State::kWarm) continue;
    if (worker.kind == kind) return &worker;
    if (!worker.outside_mps()) continue;
    stands_outside = &worker;
    ++outside_ready;
  }
  // Behind a fault those that are not tried need not wait for MPS either, where the others leave them a worker.
  const bool after_fault = is_behind_fault(state, shared_.now());
  const size_t tried = wanting(shared_, mps_, state, Worker::Kind::kOutsideMps);
  return after_fault && outside_ready > tried ? stands_outside : nullptr;
}

Worker* Workers::kept_for(SessionId session, uint32_t virtual_device) {
  for (auto& [id, worker] : shared_.registry.workers) {
    if (worker.state == Worker::State::kKept && worker.session == session && worker.virtual_device == virtual_device)
      return &worker;
  }
  return nullptr;
}

void Workers::keep(Worker& worker) {
  worker.state = Worker::State::kKept;
  worker.has_served = true;
  worker.kept_since = shared_.now();
  if (shared_.registry.workers_on(worker.device, Worker::State::kKept) <= shared_.config.kept_workers) return;
  const auto is_kept = [&](const Worker& other) {
    return other.device == worker.device && other.state == Worker::State::kKept;
  };
  const auto is_empty = [&](const Worker& other) {
    const VirtualDevice* device = shared_.registry.find_device({other.session, other.virtual_device}).second;
    return is_kept(other) && (!device || !keeps_variables(*device));
  };
  Worker* const empty = longest_kept(shared_.registry, is_empty);
  retire(empty ? *empty : *longest_kept(shared_.registry, is_kept));
}

// No uid remains for another worker of the device: a worker that serves nobody is ended, one of another device's pool
// or else the one that has been kept for the longest time.
void Workers::make_way_for_another(DeviceId device) {
  Worker* idle = longest_kept(shared_.registry, [&](const Worker& worker) {
    return worker.state == Worker::State::kKept || (worker.state == Worker::State::kWarm && worker.device != device);
  });
  if (idle) retire(*idle);
}

Status Workers::start(DeviceId device, Worker::Kind kind) {
  auto user = user_of_new_worker(shared_, under_mps(device));
  if (!user) {
    make_way_for_another(device);
    return tl::unexpected(std::move(user).error());
  }
  auto ends = protocol::socket_pair();
  if (!ends) return tl::unexpected(std::move(ends).error());
  SpawnOptions options;
  options.program = launch_.program;
  options.arguments = {
      "--socket",        "3",
      "--daemon",        shared_.places.worker,
      "--log-level",     shared_.config.log_level,
      "--reconnect-for", stringf("%ldns", static_cast<long>(shared_.config.worker_reconnect_for.count()))};
  if (!user->name.empty()) options.arguments.insert(options.arguments.end(), {"--user", user->name});
  options.descriptors = {ends->second.get()};
  options.output = launch_.output;
  options.apart = true;
  const DeviceConfig& config = device_of(device).config;
  if (config.model.kind == DeviceKind::kCuda) {
    options.environment = gpu_environment(config.uuid);
    const bool cached = !launch_.cache.empty() && (user->uid == 0 || under_mps(device));
    options.environment.push_back(cached ? "CUDA_CACHE_PATH=" + launch_.cache : "CUDA_CACHE_DISABLE=1");
    for (std::string& variable : kind == Worker::Kind::kOutsideMps ? Mps::outside() : mps_.environment(device))
      options.environment.push_back(std::move(variable));
    if (kind == Worker::Kind::kBatch)
      options.environment.push_back(Mps::thread_percentage(shared_.config.dispatch.batch_sms));
  }
  auto child = spawn(options);
  if (!child) return tl::unexpected(std::move(child).error());

  Worker worker;
  worker.id = WorkerId{shared_.ids.next()};
  worker.secret = random_secret();
  worker.device = device;
  worker.pid = child->pid;
  worker.uid = user->uid;
  worker.kind = kind;
  worker.process = std::move(child->pidfd);
  Worker& placed = shared_.registry.workers.emplace(worker.id, std::move(worker)).first->second;
  deposit(shared_.vault, placed);
  auto watch = shared_.loop.watch(placed.process.get(), EPOLLIN, [this, id = placed.id](uint32_t) { ended(id); });
  if (watch) placed.process_watch = std::move(*watch);
  listen(placed, std::move(ends->first));
  placed.patience = shared_.loop.after(shared_.config.worker_start_timeout, [this, id = placed.id] {
    shared_.log->error("worker {} is not ready after {}: killing it", id.value,
                       to_string(shared_.config.worker_start_timeout));
    kill(*shared_.registry.find_worker(id));
  });
  send_start(placed);
  shared_.log->debug("worker {} started for device {}: process {}", placed.id.value, device.value, placed.pid);
  return {};
}

void Workers::send_start(Worker& worker) {
  const DeviceState& device = device_of(worker.device);
  protocol::StartWorker message;
  message.device = static_cast<uint32_t>(worker.device.value);
  message.worker = worker.id.value;
  message.secret = worker.secret;
  message.model = device.config.model;
  message.host_threads = device.config.host_threads;
  if (worker.kind == Worker::Kind::kBatch) message.sms = batch_sms(shared_.config.dispatch, message.model);
  message.shared_faults = shares_faults(device, mps_) && !worker.outside_mps();
  message.guarded = message.shared_faults && device.config.mps == MpsMode::kAuto;
  message.variables_stay = device.config.variables_stay;
  const auto windows = offered_windows(shared_.config, shared_.registry);
  message.window_count = static_cast<uint32_t>(windows.size());
  std::copy(windows.begin(), windows.end(), message.windows);
  if (device.board) {
    worker.connection->send(message, device.board);
  } else {
    worker.connection->send(message);
  }
}

void Workers::listen(Worker& worker, protocol::Socket socket) {
  worker.connection = std::make_unique<Connection>(shared_.loop, std::move(socket));
  const WorkerId id = worker.id;
  const Status started =
      worker.connection->start({[this, id](protocol::Packet packet) { received(id, std::move(packet)); },
                                [this, id](const Error& error) { lost(id, error); }});
  if (!started) kill(worker);
}

// A worker without a connection is of no use. Mostly it is dying by itself: then the signal changes nothing, and its
// end is not counted as our doing. Of its GPU it lets go up to 0.3 s later (H100 under MPS).
void Workers::lost(WorkerId id, const Error& error) {
  Worker* worker = shared_.registry.find_worker(id);
  if (!worker) return;
  if (worker->state != Worker::State::kLeaving && !has_ended(worker->process))
    shared_.log->warn("worker {}: {}", id.value, error.text);
  kill_process(worker->process, SIGKILL);
  if (!worker->killed) shared_.events.post(WorkerLost{id});
}

void Workers::received(WorkerId id, protocol::Packet packet) {
  Worker* worker = shared_.registry.find_worker(id);
  if (!worker || worker->state == Worker::State::kLeaving) return;
  switch (packet.type) {
    case MessageType::kWorkerReady:
      return ready(*worker, packet.as<protocol::WorkerReady>());
    case MessageType::kSegmentFreed:
    case MessageType::kTaskEnded:
    case MessageType::kWorkerFault:
    case MessageType::kLeaseReturned:
    case MessageType::kBacklog:
    case MessageType::kDrained:
    case MessageType::kSuspended:
    case MessageType::kNeedsApart:
      worker->connection->hold();
      return shared_.events.post(WorkerSaid{id, std::move(packet)});
    default:
      shared_.log->error("worker {} sent message {}: killing it", id.value, static_cast<unsigned>(packet.type));
      kill(*worker);
  }
}

void Workers::ready(Worker& worker, const protocol::WorkerReady& ready) {
  if (ready.version != protocol::kProtocolVersion || ready.worker != worker.id.value || ready.secret != worker.secret) {
    shared_.log->error("worker {} speaks protocol {} (here {}) or is another one: killing it", worker.id.value,
                       ready.version, protocol::kProtocolVersion);
    return kill(worker);
  }
  worker.patience.reset();
  if (worker.state == Worker::State::kBound) {
    worker.returning = true;  // until it was told what it may be missing
    return shared_.events.post(WorkerReturned{worker.id, ready});
  }
  device_of(worker.device).starts_of(worker.kind) = {};
  if (device_of(worker.device).config.model.kind == DeviceKind::kCuda) device_of(worker.device).window = ready.window;
  worker.state = Worker::State::kWarm;
  shared_.events.post(WorkerWarm{worker.device});
}

void Workers::bound(Worker& worker, SessionId session, uint32_t virtual_device, uint64_t serial) {
  if (worker.state == Worker::State::kWarm) device_of(worker.device).arrivals.push_back(shared_.now());
  worker.state = Worker::State::kBound;
  worker.session = session;
  worker.virtual_device = virtual_device;
  worker.serial = serial;
  device_of(worker.device).last_bound = shared_.now();
  deposit(shared_.vault, worker);
  stopped_.watch();
}

void Workers::retire(Worker& worker, Until until) {
  if (worker.state == Worker::State::kLeaving) return;
  if (until == Until::kIdle) worker.state = Worker::State::kLeaving;
  if (worker.connection) worker.connection->send(protocol::Quit{});
  worker.patience = shared_.loop.after(shared_.config.worker_exit_grace, [this, id = worker.id] {
    shared_.log->warn("worker {} does not end by itself: killing it", id.value);
    kill(*shared_.registry.find_worker(id));
  });
}

void Workers::kill(Worker& worker) {
  if (recovering(worker.device)) return end_client(worker);
  worker.killed = true;
  if (taking_off_.contains(worker.id)) return;  // by MPS already, which has its own time for that
  worker.patience.reset();
  if (worker.state == Worker::State::kStarting || !is_mps_client(worker, mps_) || !take_off(worker))
    kill_process(worker.process, SIGKILL);
}

void Workers::discard(Worker& worker) {
  worker.state = Worker::State::kLeaving;
  kill(worker);
}

void Workers::ended(WorkerId id) {
  Worker* worker = shared_.registry.find_worker(id);
  if (!worker) return;
  // What it said last may still be unread; without a connection there is nothing.
  if (worker->connection) {
    while (auto packet = worker->connection->take()) {
      if (worker->killed && !worker->terminating && !counts_though_killed(*packet)) continue;
      received(id, std::move(*packet));
      if (!(worker = shared_.registry.find_worker(id))) return;
    }
  }
  auto [how, crashed] = ending_of(worker->process);
  const bool certainly = !how.empty() && !is_mps_client(*worker, mps_);
  if (how.empty()) how = "unknown status";  // not our child: it was started before heddled was
  const DeviceId device = worker->device;
  if (worker->state == Worker::State::kStarting && !stopping_)
    start_failed(device, worker->kind, how, is_mps_client(*worker, mps_) && (worker->killed || how == kRefused));
  if (worker->state != Worker::State::kBound) worker->state = Worker::State::kLeaving;  // nobody is given it now
  worker->process_watch.reset();
  worker->patience.reset();
  shared_.events.post(WorkerGone{id, how, certainly, crashed});
}

void Workers::forget(WorkerId id) {
  const Worker* worker = shared_.registry.find_worker(id);
  if (!worker) return;
  const DeviceId device = worker->device;
  if (worker->session != SessionId{}) device_of(device).last_left = shared_.now();
  shared_.vault.withdraw(NoteKind::kWorker, id.value);
  shared_.registry.workers.erase(id);
  client_gone(device);
  contexts_freed(shared_, device);
  refill(device);
}

void Workers::start_failed(DeviceId device, Worker::Kind kind, const std::string& why, bool refused) {
  DeviceState::Starts& starts = device_of(device).starts_of(kind);
  ++starts.failed;
  starts.last_failure = refused ? "MPS takes no client" : why;
  starts.next = shared_.now() + start_backoff(starts.failed);
  shared_.log->error("a worker could not start ({} times in a row): {}", starts.failed, starts.last_failure);
  if (refused) start_refused(device);
}

void Workers::adopt(Worker worker) {
  const WorkerId id = worker.id;
  Worker& placed = shared_.registry.workers.emplace(id, std::move(worker)).first->second;
  auto watch = shared_.loop.watch(placed.process.get(), EPOLLIN, [this, id](uint32_t) { ended(id); });
  if (watch) placed.process_watch = std::move(*watch);
  placed.patience = shared_.loop.after(shared_.config.reconnect_grace, [this, id] {
    shared_.log->warn("worker {} did not come back within {}: killing it", id.value,
                      to_string(shared_.config.reconnect_grace));
    kill(*shared_.registry.find_worker(id));
  });
  stopped_.watch();
}

void Workers::accept(protocol::Socket socket) {
  if (strangers_.size() >= kMostStrangers) return;
  const uint64_t key = ++last_stranger_;
  auto connection = std::make_unique<Connection>(shared_.loop, std::move(socket));
  const auto forget = [this, key] { shared_.loop.defer([this, key] { strangers_.erase(key); }); };
  const Status started = connection->start({[this, key](const protocol::Packet& packet) { greet_later(key, packet); },
                                            [forget](const Error&) { forget(); }});
  if (started) strangers_[key] = std::move(connection);
}

// Behind the round, because the connection that is calling changes its owner.
void Workers::greet_later(uint64_t key, const protocol::Packet& packet) {
  const auto found = strangers_.find(key);
  if (found == strangers_.end()) return;
  found->second->pause();
  const bool is_ready = packet.type == MessageType::kWorkerReady;
  const auto message = is_ready ? packet.as<protocol::WorkerReady>() : protocol::WorkerReady{};
  shared_.loop.defer([this, key, message] {
    auto node = strangers_.extract(key);
    if (node.empty()) return;
    Worker* worker = shared_.registry.find_worker(WorkerId{message.worker});
    if (!worker || worker->secret != message.secret || worker->state == Worker::State::kLeaving || worker->killed) {
      // One of a life of which nothing is left, or no worker at all: a worker ends, and its memory with it.
      node.mapped()->send(protocol::Quit{});
      const auto peer = node.mapped()->socket().peer();
      shared_.log->warn("process {} on the worker socket is no worker of this heddled's: told to end",
                        peer ? peer->pid : 0);
      return;
    }
    protocol::Socket socket = node.mapped()->release();
    listen(*worker, std::move(socket));
    ready(*worker, message);
  });
}

}  // namespace heddle::daemon
