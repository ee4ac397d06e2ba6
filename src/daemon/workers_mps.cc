// The part of Workers that looks after workers under MPS: taking one off its GPU, and starting anew after a fault.

#include <sys/epoll.h>

#include <algorithm>
#include <csignal>

#include "daemon/cuda_codes.h"
#include "daemon/mps_clients.h"
#include "daemon/warm_target.h"
#include "daemon/workers.h"

namespace heddle::daemon {
namespace {

using protocol::MessageType;

constexpr Duration kTakeOff = std::chrono::seconds(1);         // that MPS may take to terminate a client
constexpr Duration kMpsRetry = std::chrono::milliseconds(20);  // from a refused start to the next
constexpr uint32_t kMpsStarts = 12;                            // refused in a row, until MPS is started anew
// From a task's beginning to the start of a worker for trials, whose context keeps other programs' calls waiting.
constexpr Duration kReserveDelay = std::chrono::milliseconds(300);
constexpr Duration kReserveStays = std::chrono::seconds(10);  // from the last task's beginning: short ones come again

// How many workers stand ready outside of MPS. During a fault all that there are may be needed.
size_t reserve_of(const Shared& shared, const DeviceState& device, Bytes free, bool calm) {
  if (!calm) return kMostReserved;
  if (shared.now() < device.no_pool_before || shared.registry.workers_on(device.id) >= kMostMpsClients) return 0;
  ReserveDemand demand;
  demand.clients = serving_clients(shared.registry, device);
  demand.can_be_tried = shared.config.durability.level != DurabilityConfig::Level::kOff;
  demand.may_leave = device.config.mps == MpsMode::kAuto;
  demand.free = free;
  demand.context = device.config.context;
  return reserve_target(demand);
}

}  // namespace

Workers::Workers(Shared& shared, Launch launch, Mps& mps)
    : shared_(shared),
      launch_(std::move(launch)),
      mps_(mps),
      commands_(shared.loop, shared.clock, mps, shared.log),
      recovery_(
          shared.loop, mps, commands_, shared.log,
          {[this](DeviceId device) { recover(device, {"the MPS control daemon of the program's GPU has ended"}); },
           [this](DeviceId device) { recovered(device); }}),
      stopped_(shared),
      held_back_(shared) {}

void Workers::connect(FreeMemory free_memory) {
  free_memory_ = std::move(free_memory);
  recovery_.watch_controls();
}

void Workers::stop() {
  stopping_ = true;
  recovery_.stop();
  held_back_.stop();
}

bool counts_though_killed(const protocol::Packet& packet) {
  return packet.type == MessageType::kWorkerFault && packet.as<protocol::WorkerFault>().device_lost != 0;
}

bool Workers::recover(DeviceId device, const SharedFault& fault) {
  if (!shares_faults(device_of(device), mps_)) return false;
  if (stopping_ || !recovering_.insert(device).second) return true;
  shared_.log->error("the workers of device {} are ended{}: {}", device.value,
                     recovery_.begin(device) ? ", and its MPS is started anew" : "", fault.text);
  FaultNote note{fault.origin.first.value, fault.origin.second, fault.cuda_error, fault.kernel};
  protocol::set_text(note.text, fault.text);
  protocol::set_text(note.own_text, fault.own_text);
  shared_.vault.deposit(NoteKind::kFault, device.value, write_note(note), -1);
  shared_.loop.commit();
  shared_.events.post(DeviceFaulted{device, fault});
  size_t at_work = 0;
  for (auto& [id, worker] : shared_.registry.workers) {
    if (worker.device != device || worker.outside_mps()) continue;
    const auto served = shared_.registry.served_by(worker).second;
    at_work += served && computes(*served);
    end_client(worker);
  }
  held_back_.look(device, true);
  client_gone(device);
  // Their contexts take longer to make than the old ones to end.
  const bool can_be_tried = shared_.config.durability.level != DurabilityConfig::Level::kOff;
  if (!under_mps(device) || !fault.kernel || !can_be_tried) return true;
  // One for a program that waits already: sooner there than MPS.
  device_of(device).expected_outside = at_work + !device_of(device).wanting.empty();
  serve_outside_mps(device);
  return true;
}

// Its registered end follows; of one that serves a session, the session's loss with it.
void Workers::end_client(Worker& worker) {
  worker.killed = true;
  if (worker.state != Worker::State::kBound) worker.state = Worker::State::kLeaving;
  worker.patience.reset();
  taking_off_.erase(worker.id);
  kill_process(worker.process, SIGKILL);
}

// Whoever is tried gets a worker, and may before it is known who that is. Beyond that some stand ready, which are made
// one after the other while nothing else is going on; those that nobody needs any more end.
void Workers::serve_outside_mps(DeviceId device) {
  DeviceState& state = device_of(device);
  const bool calm = state.health == DeviceState::Health::kHealthy && !recovering(device);
  const Worker::Kind kind = Worker::Kind::kOutsideMps;
  const size_t needed =
      std::max(wanting(shared_, mps_, state, kind) + to_move(shared_, mps_, state, kind), state.expected_outside);
  const size_t wanted =
      std::max(needed, under_mps(device) ? reserve_of(shared_, state, free_memory_(device), calm) : 0);
  const TimePoint ends = state.last_bound + kReserveStays;
  size_t ready = 0;
  for (auto& [id, worker] : shared_.registry.workers) {
    if (is_ready_for_trials(worker, device) && ++ready > wanted && shared_.now() >= ends) discard(worker);
  }
  if (ready > wanted && shared_.now() < ends) start_later(device, ends);
  for (; ready < wanted; ++ready) {
    const bool urgent = ready < needed;
    // When the one that is starting is warm this comes again.
    if (!urgent && (!calm || shared_.registry.workers_on(device, Worker::State::kStarting) != 0)) return;
    const TimePoint next = state.starts_outside.next;
    const TimePoint earliest = urgent ? next : std::max(next, state.last_bound + kReserveDelay);
    if (shared_.now() < earliest) return start_later(device, earliest);
    if (const Status started = start(device, Worker::Kind::kOutsideMps); !started) {
      start_failed(device, Worker::Kind::kOutsideMps, started.error().text, false);
      return start_later(device, state.starts_outside.next);
    }
  }
}

std::optional<Worker::Kind> Workers::kind_to_move_to(const Worker& worker) {
  return daemon::kind_to_move_to(shared_, mps_, device_of(worker.device), worker);
}

void Workers::client_gone(DeviceId device) {
  const auto is_client = [&](const auto& each) { return each.second.device == device && !each.second.outside_mps(); };
  const auto& workers = shared_.registry.workers;
  if (!recovering(device) || std::any_of(workers.begin(), workers.end(), is_client)) return;
  shared_.events.post(DeviceLeft{device});
  under_mps(device) ? recovery_.clients_gone(device) : recovered(device);
}

void Workers::recovered(DeviceId device) {
  recovering_.erase(device);
  shared_.events.post(DeviceCleared{device});
}

// A server that has just lost a client, or is starting, admits the next one a little later (HARDWARE.md, p6 retry). One
// that goes on refusing has a client left that does not know of a fault.
void Workers::start_refused(DeviceId device) {
  DeviceState::Starts& starts = device_of(device).starts;
  const bool few = starts.failed < kMpsStarts;
  starts.next = shared_.now() + (few ? kMpsRetry : start_backoff(starts.failed - kMpsStarts));
  if (starts.failed % kMpsStarts != 0) return;
  recover(device, {stringf("the MPS of the program's GPU has taken no client %u times in a row", starts.failed)});
}

// A client of MPS that is killed with work in flight takes all others of its GPU with it (HARDWARE.md, p4).
bool Workers::take_off(Worker& worker) {
  const WorkerId id = worker.id;
  if (!commands_.terminate(worker.device, worker.pid, kTakeOff, [this, id](bool in_time) { taken_off(id, in_time); }))
    return false;
  taking_off_.insert(id);
  return true;
}

void Workers::taken_off(WorkerId id, bool in_time) {
  if (taking_off_.erase(id) == 0) return;
  Worker* worker = shared_.registry.find_worker(id);
  if (!worker) return;
  kill_process(worker->process, SIGKILL);
  if (in_time) shared_.events.post(WorkerOffDevice{id});
  const auto [session, device] = shared_.registry.served_by(*worker);
  if (in_time || !device || !computes(*device)) return;
  recover(worker->device, {"another program was ended in the middle of its work, and MPS did not take it off the GPU",
                           kCudaIllegalAddress});
}

}  // namespace heddle::daemon
