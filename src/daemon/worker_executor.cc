#include "daemon/worker_executor.h"

#include "daemon/cuda_codes.h"
#include "daemon/mps_clients.h"
#include "daemon/resumable.h"
#include "daemon/ring_words.h"
#include "daemon/task_trace.h"

namespace heddle::daemon {
namespace {

// From a worker's return after a restart until it is told what it may be missing. Right behind its return it says again
// what it has freed; only a segment that is still there may be sent to it.
constexpr Duration kReturnDelay = std::chrono::milliseconds(100);

// How much of its driver's memory a worker may have that is kept for the next task: what GPUs' headroom (gpus.cc)
// allows.
constexpr Bytes kMostKeptDriverMemory{64 * kMiB};

ExecutorId executor_id(WorkerId worker) {
  return {worker.value};
}

void send_binding(const Session& session, const VirtualDevice& device) {
  protocol::BindSession binding;
  binding.session = session.id.value;
  binding.task_serial = device.task->serial;
  binding.window = *session.window;
  binding.virtual_device = device.index;
  const int lent[] = {device.ring_memory.get(), device.control_memory.get()};
  device.worker->connection->send(binding, lent);
}

void send_segment(Worker& worker, const Segment& segment, bool release) {
  const protocol::MapSegment message{segment.number, segment.address, segment.bytes.value,
                                     segment.kind,   release,         segment.swap.on_host()};
  if (release) {
    worker.connection->send(message);
  } else {
    worker.connection->send(message, segment.working_memory());
  }
}

}  // namespace

void WorkerExecutor::find(Session& session, VirtualDevice& device) {
  const DeviceId on = device.task->device;
  Worker* kept = workers_.kept_for(session.id, device.index);
  if (kept && kept->device != on) workers_.retire(*kept);
  DeviceState& state = shared_.registry.devices[on.value];
  const bool may_be_outside = workers_.under_mps(on) && state.config.mps == MpsMode::kAuto && !kept;
  if (may_be_outside && !device.apart && is_full(shared_.registry, state)) {
    device.apart = true;
    shared_.log->info("session {} (process {}, {}) is served outside of MPS on device {}, which has {} clients there",
                      session.id.value, session.pid, session.program, on.value, kMostMpsClients);
  }
  state.wanting.push_back({session.id, device.index});
  shared_.events.post(ExecutorWanted{on});
}

// The one that stayed for the virtual device, else a warm one.
Worker* WorkerExecutor::worker_for(const Session& session, const VirtualDevice& device) {
  Worker* kept = workers_.kept_for(session.id, device.index);
  return kept && kept->device == device.task->device
             ? kept
             : workers_.take_warm(device.task->device, {session.id, device.index});
}

// Oldest first, but for those who need no warm worker.
std::optional<WorkerExecutor::Pair> WorkerExecutor::pair(DeviceId on) {
  auto& wanting = shared_.registry.devices[on.value].wanting;
  for (auto each = wanting.begin(); each != wanting.end();) {
    Session* session = shared_.registry.find_session(each->first);
    VirtualDevice* device = session ? &session->devices[each->second] : nullptr;
    const bool wants = device && device->task && awaits_executor(device->task->state) && device->task->device == on;
    const bool may = wants && shared_faults_.may_be_served(*session, *device);
    Worker* worker = may ? worker_for(*session, *device) : nullptr;
    if (wants && !worker) {
      ++each;
      continue;
    }
    each = wanting.erase(each);
    if (!worker) continue;
    device->worker = worker;
    if (!worker->has_served) ++device->generation;
    return Pair{session, device};
  }
  return std::nullopt;
}

void WorkerExecutor::engage(Session& session, VirtualDevice& device) {
  workers_.bound(*device.worker, session.id, device.index, device.task->serial);
  shared_.log->debug("worker {} serves session {}, task {}", device.worker->id.value, session.id.value,
                     device.task->id.value);
}

void WorkerExecutor::hand_over(Session& session, VirtualDevice& device) {
  if (device.worker->has_served) {
    device.worker->connection->send(protocol::NextTask{device.task->serial});
    return send_device_segments(session, device);
  }
  send_binding(session, device);
  send_everything(session, device);
}

void WorkerExecutor::stop(VirtualDevice& device) {
  if (device.worker) workers_.kill(*device.worker);
}

void WorkerExecutor::retire_kept(const Session& session, const VirtualDevice& device) {
  if (Worker* kept = workers_.kept_for(session.id, device.index)) workers_.retire(*kept);
}

void WorkerExecutor::send_everything(Session& session, VirtualDevice& device) {
  for (const Module& module : session.modules) device.worker->connection->send(module.message, module.memory);
  for (const Segment* segment : SegmentStore::on_host(session)) send_segment(*device.worker, *segment, false);
  send_device_segments(session, device);
}

void WorkerExecutor::send_device_segments(Session& session, VirtualDevice& device) {
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    if (segment->working_memory()) map_segment(device, *segment);
  }
  proceed(device);
}

// Not before all that was granted has its memory, and the worker has been told of it.
void WorkerExecutor::proceed(const VirtualDevice& device) {
  if (device.requests == 0) device.worker->connection->send(protocol::Proceed{});
}

std::optional<ExecutorId> WorkerExecutor::serving(const VirtualDevice& device) const {
  return device.worker ? std::optional(executor_id(device.worker->id)) : std::nullopt;
}

// A worker that is not back yet after a restart gets everything at once when it is: Proceed behind a part of it would
// let it run on without the rest.
bool WorkerExecutor::takes_memory(const VirtualDevice& device) const {
  const Worker* worker = device.worker;
  return worker && worker->connection && !worker->returning && !worker->given_up;
}

void WorkerExecutor::map_segment(VirtualDevice& device, Segment& segment) {
  SegmentStore::give(segment);
  if (segment.kind == protocol::SegmentKind::kDriver) device.worker->driver_memory += segment.bytes;
  send_segment(*device.worker, segment, false);
}

// Which serves the virtual device or is kept for it, and can be told.
Worker* WorkerExecutor::worker_of(const Session& session, const VirtualDevice& device) {
  Worker* worker = device.worker ? device.worker : workers_.kept_for(session.id, device.index);
  return worker && worker->connection ? worker : nullptr;
}

void WorkerExecutor::map_host(Session& session, const Segment& segment, bool release) {
  for (const VirtualDevice& device : session.devices) {
    if (Worker* worker = worker_of(session, device)) send_segment(*worker, segment, release);
  }
}

void WorkerExecutor::send_module(Session& session, const Module& module) {
  for (const VirtualDevice& device : session.devices) {
    if (Worker* worker = worker_of(session, device)) worker->connection->send(module.message, module.memory);
  }
}

void WorkerExecutor::adopt(Worker worker) {
  const WorkerId id = worker.id;
  workers_.adopt(std::move(worker));
  Worker& placed = shared_.registry.workers.at(id);
  if (placed.state != Worker::State::kBound) return;
  Session* session = shared_.registry.find_session(placed.session);
  if (!session || placed.virtual_device >= session->devices.size()) return workers_.kill(placed);
  VirtualDevice& device = session->devices[placed.virtual_device];
  if (!device.task || device.worker || device.task->state != TaskState::kPlaced || device.task->serial != placed.serial)
    return workers_.kill(placed);
  device.worker = &placed;
  device.apart = placed.outside_mps() && shared_.registry.devices[placed.device.value].config.mps == MpsMode::kAuto;
  events_->executor_rejoined(*session, device);
  if (placed.terminating) shared_.events.post(TerminationOrdered{session->id, device.index});
}

void WorkerExecutor::worker_returned(WorkerId id, const protocol::WorkerReady& ready) {
  Worker* returned = shared_.registry.find_worker(id);
  if (!returned) return;
  Worker& worker = *returned;
  const auto [session, device] = shared_.registry.served_by(worker);
  if (!session || !device->task) return workers_.kill(worker);
  const uint64_t serial = device->task->serial;
  const bool ours = ready.session == session->id.value && ready.virtual_device == device->index;
  if (ready.session == 0) {
    send_binding(*session, *device);  // heddled died before it could say whom to serve
  } else if (!ours || ready.task_serial > serial) {
    return events_->fail_session(*session, kCudaUnknown, "a worker came back that serves another task");
  } else if (ready.task_serial < serial) {
    worker.connection->send(protocol::NextTask{serial});  // or which task to go on with
  }
  worker.patience = shared_.loop.after(kReturnDelay, [this, id] { complete_return(id); });
}

void WorkerExecutor::complete_return(WorkerId id) {
  Worker& worker = shared_.registry.workers.at(id);
  worker.returning = false;
  const auto [session, device] = shared_.registry.served_by(worker);
  if (!session || !device->task || !worker.connection || session->failed || session->ending) return;
  if (worker.given_up) return;
  if (const Status backed = segments_.back_all(*session, device->index); !backed)
    return events_->fail_session(*session, kCudaMemoryAllocation, backed.error().text);
  send_everything(*session, *device);
  say_bound(*device, device->task->serial);
  if (device->task->state == TaskState::kSuspending) suspend(*device);
}

void WorkerExecutor::worker_said(WorkerId id, const protocol::Packet& packet) {
  Worker* worker = shared_.registry.find_worker(id);
  if (!worker) return;
  if (worker->connection) worker->connection->handled();
  switch (packet.type) {
    case protocol::MessageType::kSegmentFreed:
      return segment_freed(*worker, packet.as<protocol::SegmentFreed>().number);
    case protocol::MessageType::kTaskEnded:
      return task_ended(*worker, packet.as<protocol::TaskEnded>());
    case protocol::MessageType::kWorkerFault:
      return worker_fault(*worker, packet.as<protocol::WorkerFault>());
    case protocol::MessageType::kNeedsApart:
      return shared_faults_.needs_apart(*worker, packet.as<protocol::NeedsApart>());
    case protocol::MessageType::kSuspended:
      return suspended(*worker, packet.as<protocol::Suspended>());
    default:
      return lease_said(*worker, packet);  // Workers lets nothing else through
  }
}

// A worker that ends its session's task says no more of it.
void WorkerExecutor::lease_said(const Worker& worker, const protocol::Packet& packet) {
  const auto [session, device] = shared_.registry.served_by(worker);
  if (!session || !device->task) return;
  const uint64_t serial = device->task->serial;
  if (packet.type == protocol::MessageType::kLeaseReturned)
    return leases_.returned(*session, *device, packet.as<protocol::LeaseReturned>().generation);
  if (packet.type == protocol::MessageType::kBacklog && packet.as<protocol::Backlog>().serial == serial)
    return leases_.backlog(*session, *device);
  if (packet.type == protocol::MessageType::kDrained && packet.as<protocol::Drained>().serial == serial)
    return leases_.drained(*session, *device);
}

void WorkerExecutor::segment_freed(const Worker& worker, uint64_t number) {
  if (number == 0) return events_->idle_returned(executor_id(worker.id));
  const auto [session, device] = shared_.registry.served_by(worker);
  if (session) events_->segment_freed(*session, *device, number);
}

void WorkerExecutor::task_ended(Worker& worker, const protocol::TaskEnded& ended) {
  const auto [session, device] = shared_.registry.served_by(worker);
  if (!session || !device->task || device->task->serial != ended.serial || session->failed || session->ending) return;
  device->worker = nullptr;
  events_->finished(*session, *device, ended.unmapped != 0);
  if (worker.killed) return workers_.discard(worker);  // with all others of its GPU, while it said so
  // What a driver took for a context it keeps until the context ends; of a kept one nobody would be charged for it.
  const bool too_large = worker.driver_memory > kMostKeptDriverMemory;
  const Job* job = shared_.registry.find_job(session->job);
  const bool in_the_way = job && job->suspended && !keeps_variables(*device);
  const bool was_tried = worker.outside_mps() && !device->apart;
  ended.reset || too_large || in_the_way || was_tried ? workers_.retire(worker) : workers_.keep(worker);
}

void WorkerExecutor::worker_fault(Worker& worker, const protocol::WorkerFault& fault) {
  // What heddled has MPS do to a client is nobody's fault.
  if ((worker.killed || worker.terminating) && fault.cuda_error == kCudaMpsClientTerminated) return;
  const auto [session, device] = shared_.registry.served_by(worker);
  const std::string text = protocol::get_text(fault.text);
  if (session) {
    shared_.log->warn("session {} (process {}, {}) faulted on device {} with CUDA error {}: {}", session->id.value,
                      session->pid, session->program, worker.device.value, fault.cuda_error, text);
    if (device->task) trace_task(shared_, "fault", *session, *device->task, device->live, text);
  }
  if (fault.held_back != 0) return shared_faults_.reported(worker, fault);
  worker.last_fault = text;
  if (!workers_.under_mps(worker.device) || worker.outside_mps()) return;
  if (session && !session->ending) events_->fail_session(*session, fault.cuda_error, text);
}

void WorkerExecutor::worker_lost(WorkerId id) {
  Worker* worker = shared_.registry.find_worker(id);
  if (!worker) return;
  const auto [session, device] = shared_.registry.served_by(*worker);
  if (session) shared_faults_.worker_died(*worker, *device);
}

// Whoever waits for the device need not wait for the process. What it wrote counts once that has ended.
void WorkerExecutor::worker_off_device(WorkerId id) {
  const Worker* worker = shared_.registry.find_worker(id);
  if (!worker || !worker->terminating) return;
  const auto [session, device] = shared_.registry.served_by(*worker);
  if (session) leases_.worker_gone(*session, *device);
}

std::optional<SessionId> WorkerExecutor::worker_gone(const WorkerGone& event) {
  const WorkerId id = event.worker;
  Worker* worker = shared_.registry.find_worker(id);
  if (!worker) return std::nullopt;
  events_->idle_returned(executor_id(id));
  const auto [session, device] = shared_.registry.served_by(*worker);
  if (!session) return std::nullopt;
  if (!worker->killed) shared_faults_.worker_died(*worker, *device);
  const std::string obstacle = obstacle_to_resume(*worker, *session, *device, event.crashed);
  if (obstacle.empty()) {
    resume(*worker, *session, *device, event);
    return std::nullopt;
  }
  device->worker = nullptr;
  const std::string said = worker->last_fault.empty() ? "" : ": " + worker->last_fault;
  const std::string why = stringf(
      "worker %lu, process %d, on device %lu ended unexpectedly (%s)%s; the program's device memory is lost, because "
      "%s",
      static_cast<unsigned long>(id.value), worker->pid, static_cast<unsigned long>(worker->device.value),
      event.how.c_str(), said.c_str(), obstacle.c_str());
  const SessionId served = session->id;
  if (!events_->executor_gone(*session, *device, why, event.certainly)) return std::nullopt;
  return served;
}

}  // namespace heddle::daemon
