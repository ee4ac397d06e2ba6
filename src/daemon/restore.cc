#include "daemon/restore.h"

#include <algorithm>
#include <cstring>

#include "daemon/spawn.h"
#include "daemon/task_request.h"

namespace heddle::daemon {
namespace {

// Turns one deposit after the other into an entry of the registry.
class Restorer {
 public:
  Restorer(Shared& shared, TakenOver& result) : shared_(shared), result_(result) {}

  Status take(RestoredItem& item) {
    switch (item.kind) {
      case NoteKind::kListener:
        return listener(item);
      case NoteKind::kIds:
        return with<IdsNote>(item, [&](const IdsNote& note) { return ids(note); });
      case NoteKind::kLife:
        return with<LifeNote>(item, [&](const LifeNote& note) { return life(note); });
      case NoteKind::kBoard:
        return with<BoardNote>(item, [&](const BoardNote& note) { return board(item, note); });
      case NoteKind::kJob:
        return with<JobNote>(item, [&](const JobNote& note) { return job(item, note); });
      case NoteKind::kSession:
        return with<SessionNote>(item, [&](const SessionNote& note) { return session(item, note); });
      case NoteKind::kRing:
        return ring(item);
      case NoteKind::kModule:
        return with<ModuleNote>(item, [&](const ModuleNote& note) { return module(item, note); });
      case NoteKind::kTask:
        return with<TaskNote>(item, [&](const TaskNote& note) { return task(item, note); });
      case NoteKind::kSegment:
        return with<SegmentNote>(item, [&](const SegmentNote& note) { return segment(item, note); });
      case NoteKind::kWorker:
        return with<WorkerNote>(item, [&](const WorkerNote& note) { return worker(item, note); });
      case NoteKind::kGpus:
        return {};  // read before the pool was made
      case NoteKind::kControl:
        return with<ControlNote>(item, [&](const ControlNote& note) { return control(item, note); });
      case NoteKind::kFault:
        return with<FaultNote>(item, [&](const FaultNote& note) { return fault(item, note); });
    }
    return fail(ErrorCode::kCorrupt, "of unknown kind");
  }

 private:
  template <class Note, class Then>
  Status with(const RestoredItem& item, Then then) {
    const auto note = read_note<Note>(item.note);
    if (!note) return tl::unexpected(note.error());
    return then(*note);
  }

  Result<Session*> session_of(uint64_t id) {
    Session* session = shared_.registry.find_session(SessionId{id});
    if (!session) return fail(ErrorCode::kNotFound, "of session %lu, which is unknown", static_cast<unsigned long>(id));
    return session;
  }
  Result<VirtualDevice*> device_of(uint64_t session_id, uint32_t index) {
    const auto session = session_of(session_id);
    if (!session) return tl::unexpected(session.error());
    if (index >= (*session)->devices.size()) return fail(ErrorCode::kCorrupt, "of virtual device %u", index);
    return &(*session)->devices[index];
  }

  Status listener(RestoredItem& item) {
    (item.key == 1 ? result_.control : result_.worker) = std::move(item.descriptor);
    return {};
  }
  Status ids(const IdsNote& note) {
    shared_.ids.restore(note.next);
    return {};
  }
  Status life(const LifeNote& note) {
    result_.starts = note.starts;
    result_.policy = protocol::get_text(note.policy);
    return {};
  }

  Status board(RestoredItem& item, const BoardNote& note) {
    if (item.key >= shared_.registry.devices.size()) return fail(ErrorCode::kNotFound, "of a device that is gone");
    DeviceState& device = shared_.registry.devices[item.key];
    if (protocol::get_text(note.model) != device.config.model.model)
      return fail(ErrorCode::kNotFound, "of a device that is another one now");
    if (device.config.model.kind == DeviceKind::kCuda) {
      device.config.model.memory_bytes = note.bytes;
    } else {
      device.board = std::move(item.descriptor);
    }
    return {};
  }

  Status job(const RestoredItem& item, const JobNote& note) {
    Job job;
    job.id = JobId{item.key};
    job.secret = note.secret;
    job.uid = note.uid;
    job.suspended = note.suspended != 0;
    job.swap = note.swap != 0;
    job.budget = Bytes{note.budget_bytes};
    const auto job_class = note.user_facing != 0 ? policy::JobClass::kUserFacing : policy::JobClass::kBatch;
    job.tenant = {job.id,    note.weight,          note.share, note.limit, protocol::get_text(note.app),
                  job_class, Duration(note.slo_ns)};
    job.name = protocol::get_text(note.name);
    shared_.registry.jobs.emplace(job.id, std::move(job));
    return {};
  }

  Status session(RestoredItem& item, const SessionNote& note) {
    Job* job = shared_.registry.find_job(JobId{note.job});
    if (!job || note.device_count > protocol::kMaxDevices || !item.descriptor)
      return fail(ErrorCode::kCorrupt, "of no job or without a process");
    Session session;
    session.id = SessionId{item.key};
    session.job = job->id;
    session.secret = note.secret;
    session.uid = note.uid;
    session.pid = static_cast<pid_t>(note.pid);
    session.budget = Bytes{note.budget_bytes};
    session.highest_segment = note.highest_segment;
    session.program = protocol::get_text(note.program);
    session.model = protocol::get_text(note.model);
    if (note.window.base != 0) session.window = note.window;
    session.process = std::move(item.descriptor);
    session.seen_devices = std::min(note.seen_devices, note.device_count);
    session.devices.resize(note.device_count);
    for (size_t i = 0; i < session.devices.size(); ++i) session.devices[i].index = static_cast<uint32_t>(i);
    job->sessions.insert(session.id);
    shared_.registry.sessions.emplace(session.id, std::move(session));
    return {};
  }

  // Without its ring a session cannot go on, whatever version the note is of.
  Status ring(RestoredItem& item) {
    Status taken = with<RingNote>(item, [&](const RingNote& note) { return ring(item, note); });
    uint64_t session = 0;
    if (!taken && item.note.size() >= sizeof session) {
      std::memcpy(&session, item.note.data(), sizeof session);
      result_.broken.insert(SessionId{session});
    }
    return taken;
  }
  Status ring(RestoredItem& item, const RingNote& note) {
    const auto found = device_of(note.session, note.virtual_device);
    if (!found) return tl::unexpected(found.error());
    VirtualDevice& device = **found;
    // The program may have written anything into it meanwhile.
    auto memory = protocol::RingMemory::attach(item.descriptor);
    if (!memory) return tl::unexpected(memory.error());
    device.ring = std::move(*memory);
    device.ring_memory = std::move(item.descriptor);
    device.ring_key = item.key;
    device.last_serial = note.last_serial;
    device.generation = note.generation;
    device.accounted = note.accounted;
    device.terminations.done = note.terminations;
    device.terminations.refused = note.terminations_refused;
    device.resumed.count = note.resumptions;  // how its workers ended is not noted
    if (note.assigned_device >= 0) device.assigned = DeviceId{static_cast<uint64_t>(note.assigned_device)};
    return {};
  }

  Status control(RestoredItem& item, const ControlNote& note) {
    const auto found = device_of(note.session, note.virtual_device);
    if (!found) return tl::unexpected(found.error());
    auto page = protocol::ControlPage::attach(item.descriptor);
    if (!page) return tl::unexpected(page.error());
    (*found)->control = std::move(*page);
    (*found)->control_memory = std::move(item.descriptor);
    return {};
  }

  Status fault(const RestoredItem& item, const FaultNote& note) {
    if (item.key >= shared_.registry.devices.size()) return fail(ErrorCode::kNotFound, "of a device that is gone");
    result_.faults[DeviceId{item.key}] = {protocol::get_text(note.text),
                                          note.cuda_error,
                                          note.kernel != 0,
                                          {SessionId{note.origin}, note.virtual_device},
                                          protocol::get_text(note.own_text)};
    return {};
  }

  Status module(RestoredItem& item, const ModuleNote& note) {
    const auto session = session_of(note.session);
    if (!session) return tl::unexpected(session.error());
    const auto size = sealed_size(item.descriptor);
    if (!size || note.module != (*session)->modules.size() + 1)
      return fail(ErrorCode::kCorrupt, "out of order or without memory");
    Module module;
    module.key = item.key;
    module.message.module = note.module;
    module.message.bytes = note.bytes;
    module.memory = std::move(item.descriptor);
    (*session)->module_bytes += *size;
    (*session)->modules.push_back(std::move(module));
    return {};
  }

  Status task(const RestoredItem& item, const TaskNote& note) {
    const auto found = device_of(note.session, note.need.virtual_device);
    if (!found) return tl::unexpected(found.error());
    // Its worker, too, finds nothing to serve then.
    if (!(*found)->ring) {
      result_.broken.insert(SessionId{note.session});
      return fail(ErrorCode::kCorrupt, "of session %lu, whose ring is lost", static_cast<unsigned long>(note.session));
    }
    if (note.place != TaskNote::kWaits && note.device >= shared_.registry.devices.size()) {
      result_.broken.insert(SessionId{note.session});
      return fail(ErrorCode::kNotFound, "on device %u, which is gone", note.device);
    }
    auto task = std::make_unique<Task>();
    task->id = TaskId{item.key};
    task->serial = note.serial;
    task->declared = note.need;
    task->need = need_of(note.need);
    task->arrived = TimePoint(Duration(static_cast<int64_t>(note.arrived_ns)));
    if (note.place == TaskNote::kGranted) task->granted = task->arrived;  // when it was is not noted
    task->state = state_of(note.place);
    task->device = DeviceId{note.device};
    task->gives_way = static_cast<GivesWay>(note.gives_way);
    task->swaps = note.swaps;
    task->reason = "granted before heddled was restarted";
    (*found)->task = std::move(task);
    return {};
  }

  Status segment(RestoredItem& item, const SegmentNote& note) {
    const auto session = session_of(note.session);
    if (!session) return tl::unexpected(session.error());
    Segment segment;
    segment.id = SegmentId{item.key};
    segment.number = note.number;
    segment.address = note.address;
    segment.bytes = Bytes{note.bytes};
    segment.kind = note.kind;
    segment.virtual_device = note.virtual_device;
    segment.state = note.held ? Segment::State::kHeld : Segment::State::kNamed;
    const bool on_host = note.memory == SegmentNote::kOnHost;  // its memory may not be made yet
    const bool swapped = note.memory == SegmentNote::kInSwapSpace || on_host;
    (swapped ? segment.swap.memory : segment.memory) = std::move(item.descriptor);
    if (note.virtual_device >= (*session)->devices.size() ||
        (note.memory != SegmentNote::kNone && !on_host && !segment.memory && !segment.swap.memory))
      return fail(ErrorCode::kCorrupt, "of no virtual device or without its memory");
    if (swapped) restore_swapped(**session, segment, on_host);
    if (segment.kind == protocol::SegmentKind::kHost) {
      (*session)->host_bytes += segment.bytes;
      shared_.registry.host_bytes += segment.bytes;
    }
    (*session)->highest_segment = std::max((*session)->highest_segment, segment.number);
    (*session)->by_address[segment.address] = segment.number;
    (*session)->segments.emplace(segment.number, std::move(segment));
    return {};
  }

  // A worker whose session or task is gone has nothing to do here: it comes back as one that serves nobody, and ends.
  Status worker(RestoredItem& item, const WorkerNote& note) {
    Worker worker;
    worker.id = WorkerId{item.key};
    worker.secret = note.secret;
    worker.device = DeviceId{note.device};
    worker.pid = static_cast<pid_t>(note.pid);
    worker.uid = note.uid;
    worker.process = std::move(item.descriptor);
    worker.session = SessionId{note.session};
    worker.virtual_device = note.virtual_device;
    worker.serial = note.serial;
    worker.terminating = note.terminating != 0;
    worker.kind = static_cast<Worker::Kind>(std::min(note.kind, static_cast<uint32_t>(Worker::Kind::kOutsideMps)));
    worker.state = note.session != 0 ? Worker::State::kBound : Worker::State::kStarting;
    if (!worker.process || note.device >= shared_.registry.devices.size())
      return fail(ErrorCode::kNotFound, "on a device that is gone, or without a process");
    result_.workers.push_back(std::move(worker));
    return {};
  }

  static TaskState state_of(uint32_t place) {
    switch (place) {
      case TaskNote::kGranted:
        return TaskState::kPlaced;
      case TaskNote::kSwapped:
        return TaskState::kSwapped;
      default:
        return TaskState::kArriving;
    }
  }

  // A task that had its device again was copying from there: it begins anew. One that runs with memory on the host goes
  // on with it.
  void restore_swapped(Session& session, Segment& segment, bool on_host) {
    segment.swap.place = on_host ? Segment::Swap::kOnHost : Segment::Swap::kSwapped;
    VirtualDevice& device = session.devices[segment.virtual_device];
    device.swapped += segment.bytes;
    shared_.registry.swapped += segment.bytes;
    if (on_host) return;
    if (device.task && device.task->state == TaskState::kPlaced) device.task->state = TaskState::kSwappingIn;
  }

  Shared& shared_;
  TakenOver& result_;
};

}  // namespace

TakenOver restore(Shared& shared, std::vector<RestoredItem> items) {
  TakenOver result;
  Restorer restorer(shared, result);
  // The kinds are numbered so that each refers only to smaller ones.
  std::stable_sort(items.begin(), items.end(),
                   [](const RestoredItem& a, const RestoredItem& b) { return a.kind < b.kind; });
  for (RestoredItem& item : items) {
    const Status taken = restorer.take(item);
    if (taken) continue;
    shared.log->warn("deposit {}/{} is dropped: {}", static_cast<uint64_t>(item.kind), item.key, taken.error().text);
    shared.vault.withdraw(item.kind, item.key);
  }
  // No worker could be bound to its ring.
  const auto lacks_page = [](const VirtualDevice& device) { return device.ring && !device.control; };
  for (const auto& [id, session] : shared.registry.sessions) {
    if (std::any_of(session.devices.begin(), session.devices.end(), lacks_page)) result.broken.insert(id);
  }
  return result;
}

}  // namespace heddle::daemon
