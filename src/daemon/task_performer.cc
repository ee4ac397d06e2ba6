#include "daemon/task_performer.h"

#include "daemon/ring_words.h"

namespace heddle::daemon {

Status TaskPerformer::perform(std::span<const TaskAction> actions, Session& session, VirtualDevice& device) {
  Status done;
  for (const TaskAction action : actions) {
    if (!done && action == TaskAction::kHandOver) continue;
    if (Status each = perform(action, session, device); !each) done = std::move(each);
  }
  return done;
}

Status TaskPerformer::perform(TaskAction action, Session& session, VirtualDevice& device) {
  const Task& task = *device.task;
  switch (action) {
    case TaskAction::kDepositTask:
      deposit_task(session, device);
      break;
    case TaskAction::kDepositSegments:
      deposit_segments(session, device);
      break;
    case TaskAction::kDepositRing:
      deposit_ring(session, device);
      break;
    case TaskAction::kWithdrawTask:
      shared_.vault.withdraw(NoteKind::kTask, task.id.value);
      break;
    case TaskAction::kTellWaiting:
      say_waiting(device);
      break;
    case TaskAction::kTellBound:
      say_bound(device, task.serial);
      break;
    case TaskAction::kTellUnbound:
      if (device.next.empty()) say_unbound(device);
      break;
    case TaskAction::kHoldSegments:
      hold_segments(session, device);
      break;
    case TaskAction::kAllocate:
      return segments_.back_all(session, device.index);
    case TaskAction::kFindExecutor:
      executor_.find(session, device);
      break;
    case TaskAction::kEngageExecutor:
      executor_.engage(session, device);
      break;
    case TaskAction::kHandOver:
      executor_.hand_over(session, device);
      break;
    case TaskAction::kSuspendExecutor:
      executor_.suspend(device);
      break;
    case TaskAction::kStopExecutor:
      executor_.stop(device);
      break;
    case TaskAction::kSwapOut:
      swaps_.out(session, device);
      break;
    case TaskAction::kSwapIn:
      swaps_.in(session, device);
      break;
    case TaskAction::kStopSwap:
      swaps_.stop(session, device);
      break;
    case TaskAction::kLeaveDevice:
      swaps_.left(session, device);
      break;
    case TaskAction::kReturnSpace:
      swaps_.returned(session, device);
      break;
  }
  return {};
}

void TaskPerformer::deposit_task(const Session& session, const VirtualDevice& device) {
  const Task& task = *device.task;
  TaskNote note{};
  note.session = session.id.value;
  note.serial = task.serial;
  note.arrived_ns = static_cast<uint64_t>(task.arrived.time_since_epoch().count());
  note.need = task.declared;
  note.need.virtual_device = device.index;
  const bool swapped = task.state == TaskState::kSwapped || task.state == TaskState::kReturning;
  note.place = swapped ? TaskNote::kSwapped : has_device(task.state) ? TaskNote::kGranted : TaskNote::kWaits;
  note.device = static_cast<uint32_t>(task.device.value);
  note.gives_way = static_cast<uint32_t>(task.gives_way);
  note.swaps = task.swaps;
  shared_.vault.deposit(NoteKind::kTask, task.id.value, write_note(note), -1);
}

void TaskPerformer::deposit_segments(Session& session, const VirtualDevice& device) {
  for (const Segment* segment : SegmentStore::of_device(session, device.index)) segments_.deposit(session, *segment);
}

void TaskPerformer::deposit_ring(const Session& session, const VirtualDevice& device) {
  RingNote note{};
  note.session = session.id.value;
  note.last_serial = device.last_serial;
  note.generation = device.generation;
  note.virtual_device = device.index;
  note.assigned_device = device.assigned ? static_cast<int32_t>(device.assigned->value) : -1;
  note.accounted = device.accounted;
  note.resumptions = device.resumed.count;
  note.terminations = device.terminations.done;
  note.terminations_refused = device.terminations.refused;
  shared_.vault.deposit(NoteKind::kRing, device.ring_key, write_note(note), device.ring_memory.get());
}

void TaskPerformer::deposit_control(const Session& session, const VirtualDevice& device) {
  ControlNote note{};
  note.session = session.id.value;
  note.virtual_device = device.index;
  shared_.vault.deposit(NoteKind::kControl, device.ring_key, write_note(note), device.control_memory.get());
}

// Extensions that were asked for meanwhile are decided on their own. All are deposited before anybody is answered: a
// message commits, and a successor finds the grant whole or not at all.
void TaskPerformer::hold_segments(Session& session, const VirtualDevice& device) {
  const auto& asked = device.task->asked;
  const std::set<uint64_t> open(asked.begin(), asked.end());
  std::vector<Segment*> granted;
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    if (segment->state != Segment::State::kAsked || open.contains(segment->number)) continue;
    segment->state = Segment::State::kHeld;
    segments_.deposit(session, *segment);
    granted.push_back(segment);
  }
  for (Segment* segment : granted) answer(session, *segment);
}

void TaskPerformer::hold(Session& session, Segment& segment) {
  segment.state = Segment::State::kHeld;
  segments_.deposit(session, segment);
  answer(session, segment);
}

// Behind the deposits: a program is told of nothing that a restart could take back.
void TaskPerformer::answer(const Session& session, Segment& segment) {
  const uint64_t request = std::exchange(segment.answers, 0);
  if (request != 0 && session.connection) session.connection->send(protocol::SegmentAnswer{request});
}

void TaskPerformer::refuse(const Session& session, const Segment& segment, uint32_t cuda_error,
                           const std::string& text) {
  protocol::SegmentAnswer answer{segment.answers, cuda_error};
  protocol::set_text(answer.text, text);
  session.connection->send(answer);
}

Status TaskPerformer::add_memory(Session& session, VirtualDevice& device, Segment& segment) {
  if (!executor_.takes_memory(device)) return {};
  HEDDLE_TRY(segments_.back(session, segment));
  if (segment.memory) executor_.map_segment(device, segment);
  return {};
}

void TaskPerformer::memory_came(Session& session, Segment& segment) {
  VirtualDevice& device = session.devices[segment.virtual_device];
  const bool comes_back = device.task && device.task->state == TaskState::kSwappingIn;
  const bool promoted = device.task && device.task->state == TaskState::kPromoting;
  if (comes_back || promoted) return swaps_.memory_came(session, segment);
  if (!executor_.takes_memory(device) || session.failed || session.ending) return;
  executor_.map_segment(device, segment);
  executor_.proceed(device);
}

}  // namespace heddle::daemon
