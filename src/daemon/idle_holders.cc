#include "daemon/idle_holders.h"

#include "daemon/resumable.h"
#include "policy/swapping.h"

namespace heddle::daemon {
namespace {

uint64_t last_record(const VirtualDevice& device) {
  return device.ring->header().last_sequence.load(std::memory_order_acquire);
}

}  // namespace

bool may_leave_again(const Task& task, Duration idle, TimePoint now) {
  if (task.came_back == TimePoint{}) return true;
  return policy::may_leave_again(now - task.came_back, task.swap_took, idle);
}

bool has_work(const VirtualDevice& device) {
  if (!device.ring || !device.control) return false;
  if (device.task && (!device.task->asked.empty() || !device.task->held_back.empty())) return true;
  return last_record(device) != device.control->log().completed;
}

bool IdleHolders::due(bool somebody_waits) {
  const Duration idle = shared_.config.swap.idle;
  if (idle == Duration::zero() || shared_.config.swap.host->value == 0) return false;
  if (!somebody_waits) {
    alarm_.reset();
    return false;
  }
  const TimePoint now = shared_.now();
  const bool is = now >= next_look_;
  if (is) next_look_ = now + idle;
  if (is || !alarm_) alarm_ = shared_.loop.at(next_look_, [this] { shared_.events.books_changed(); });
  return is;
}

std::vector<TaskId> IdleHolders::look() {
  std::vector<TaskId> idle;
  for (auto& [id, session] : shared_.registry.sessions) {
    if (session.failed || session.ending) continue;
    for (VirtualDevice& device : session.devices) {
      if (device.task && device.task->state == TaskState::kRunning && is_idle(device)) idle.push_back(device.task->id);
    }
  }
  return idle;
}

bool IdleHolders::is_idle(VirtualDevice& device) {
  Task& task = *device.task;
  const TimePoint now = shared_.now();
  const bool healthy = shared_.registry.devices[task.device.value].health == DeviceState::Health::kHealthy;
  if (!healthy || has_work(device) || !device.next.empty() || !present_obstacle(device).empty()) {
    task.quiet.reset();
    return false;
  }
  if (!task.quiet || task.quiet->sequence != last_record(device)) task.quiet = Quiet{last_record(device), now};
  const Duration idle = shared_.config.swap.idle;
  return now - task.quiet->since >= idle && !task.keeps_device && may_leave_again(task, idle, now);
}

}  // namespace heddle::daemon
