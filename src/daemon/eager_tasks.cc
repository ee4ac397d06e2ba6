#include "daemon/eager_tasks.h"

#include "daemon/resumable.h"
#include "daemon/task_trace.h"
#include "policy/eager.h"

namespace heddle::daemon {
namespace {

Bytes bytes_of(const std::vector<Segment*>& segments) {
  Bytes sum;
  for (const Segment* each : segments) sum += each->bytes;
  return sum;
}

// What is memory of the device whatever happens: it stands for what the worker's driver takes.
bool has_bytes(const Segment& segment) {
  return segment.kind == protocol::SegmentKind::kDevice;
}

std::vector<Bytes> sizes_of(const std::vector<Segment*>& segments) {
  std::vector<Bytes> sizes;
  for (const Segment* each : segments) sizes.push_back(each->bytes);
  return sizes;
}

// Of the task's segments, those that go to the host where the device has so much for all of them.
std::vector<Segment*> host_part(Session& session, const VirtualDevice& device, Bytes on_device) {
  std::vector<Segment*> segments = SegmentStore::of_device(session, device.index);
  std::stable_partition(segments.begin(), segments.end(), [](const Segment* each) { return !has_bytes(*each); });
  for (const size_t fits : policy::segments_that_fit(sizes_of(segments), on_device)) segments[fits] = nullptr;
  std::erase(segments, nullptr);
  if (!std::all_of(segments.begin(), segments.end(), [](const Segment* each) { return has_bytes(*each); })) return {};
  return segments;
}

// Of what lies on the host, what a device has place for.
std::vector<Segment*> promotable(Session& session, const VirtualDevice& device, Bytes place) {
  std::vector<Segment*> on_host, segments;
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    if (segment->swap.place == Segment::Swap::kOnHost && segment->swap.memory) on_host.push_back(segment);
  }
  for (const size_t fits : policy::segments_that_fit(sizes_of(on_host), place)) segments.push_back(on_host[fits]);
  return segments;
}

}  // namespace

void EagerTasks::launch() {
  if (!shared_.config.eager_launch || tasks_.grants_at_malloc_) return;
  while (launch_one()) {
  }
}

bool EagerTasks::launch_one() {
  for (const policy::EagerPlace& place : policy::Eager::could_launch(*tasks_.scheduler_)) {
    const auto [session, device] = shared_.registry.owner_of(place.task);
    if (!session || device->task->state != TaskState::kWaiting || device->task->serial == 0) continue;
    const Bytes on_host = bytes_of(host_part(*session, *device, place.most));
    if (!policy::may_launch(place, device->live, on_host, swap_free())) continue;
    tasks_.scheduler_->launched_eagerly(place.task, place.device, on_host, shared_.now());
    tasks_.decide();
    return true;
  }
  return false;
}

Bytes EagerTasks::swap_free() const {
  const Bytes limit = *shared_.config.swap.host, used = shared_.registry.swapped;
  return used <= limit ? limit - used : Bytes{};
}

void EagerTasks::put_on_host(Session& session, VirtualDevice& device, const policy::Decision& granted) {
  for (Segment* segment : host_part(session, device, granted.memory - granted.on_host))
    tasks_.segments_.put_on_host(session, *segment);
}

void EagerTasks::promote() {
  for (auto& [id, session] : shared_.registry.sessions) {
    for (VirtualDevice& device : session.devices) {
      const bool is_suspended = device.task && device.task->state == TaskState::kSuspended;
      if (is_suspended && device.task->gives_way == GivesWay::kPromotion) promote_suspended(session, device);
      if (may_promote(session, device)) begin_to_promote(session, device);
    }
  }
}

// The place is the task's from now on: nobody else gets it while the task comes to a cut.
void EagerTasks::begin_to_promote(Session& session, VirtualDevice& device) {
  const Bytes place = policy::Eager::could_promote(*tasks_.scheduler_, device.task->id);
  const std::vector<Segment*> segments = promotable(session, device, place);
  const Bytes fits = bytes_of(segments);
  if (!policy::is_worth_promoting(fits, bytes_on_host(session, device))) return;
  for (Segment* segment : segments) segment->swap.place = Segment::Swap::kPromoting;
  tasks_.scheduler_->promoted(device.task->id, fits, shared_.now());
  shared_.events.books_changed();
  TaskSwaps(tasks_).give_way(session, device, GivesWay::kPromotion);
}

// Not while its program ends the task, or another that it has begun.
bool EagerTasks::may_promote(const Session& session, const VirtualDevice& device) const {
  if (device.swapped.value == 0 || !device.task || session.failed || session.ending) return false;
  const Task& task = *device.task;
  if (!can_be_suspended(task.state) || task.gives_way != GivesWay::kNo || task.keeps_on_host) return false;
  if (!device.next.empty() || !lasting_obstacle(device).empty()) return false;
  return shared_.registry.devices[task.device.value].health == DeviceState::Health::kHealthy;
}

void EagerTasks::promote_suspended(Session& session, VirtualDevice& device) {
  Task& task = *device.task;
  task.gives_way = GivesWay::kNo;
  const auto segments = SegmentStore::of_device(session, device.index);
  const bool any = std::any_of(segments.begin(), segments.end(),
                               [](const Segment* each) { return each->swap.place == Segment::Swap::kPromoting; });
  // A heddled before this one meant to, or its program has freed what it was about.
  if (!any) {
    tasks_.performer_.deposit_task(session, device);
    return tasks_.follow_job(session, device);
  }
  task.swap_began = shared_.now();
  tasks_.swaps_.promote(session, device);
  tasks_.apply(session, device, TaskEvent::kPromoteAsked);
}

bool EagerTasks::memory_moved(const MemoryMoved& moved) {
  const auto [session, device] = shared_.registry.owner_of(moved.task);
  if (!session || device->task->state != TaskState::kPromoting) return false;
  if (device->swap_attempt != moved.attempt) return true;
  Task& task = *device->task;
  Bytes bytes;
  for (const Segment* segment : SegmentStore::of_device(*session, device->index)) {
    if (segment->swap.place == Segment::Swap::kPromoting) bytes += segment->bytes;
  }
  if (!moved.status) {
    keep_on_host(*session, *device, bytes, moved.status.error());
    return true;
  }
  ++task.promotions;
  trace_task(shared_, "promoted", *session, task, bytes, "its device has place for it");
  shared_.log->info("task {} of session {} has {} more on device {}: copied in {}", task.id.value, session->id.value,
                    to_string(bytes), task.device.value, to_string(shared_.now() - task.swap_began));
  tasks_.apply(*session, *device, TaskEvent::kSwappedIn);
  return true;
}

void EagerTasks::keep_on_host(Session& session, VirtualDevice& device, Bytes bytes, const Error& why) {
  Task& task = *device.task;
  task.keeps_on_host = true;
  shared_.log->warn("task {} of session {} keeps {} on the host: {}", task.id.value, session.id.value,
                    to_string(bytes_on_host(session, device)), why.text);
  tasks_.scheduler_->returned_to_host(task.id, bytes, shared_.now());
  shared_.events.books_changed();
  tasks_.apply(session, device, TaskEvent::kSwapFailed);
}

}  // namespace heddle::daemon
