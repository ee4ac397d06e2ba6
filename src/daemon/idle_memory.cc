#include "daemon/idle_memory.h"

#include "daemon/ring_words.h"

namespace heddle::daemon {
namespace {

// What a worker may be at: work that its program had issued before it was asked. One that takes longer is not waited
// for again until it has answered.
constexpr Duration kReturnPatience = std::chrono::seconds(1);

}  // namespace

bool IdleMemory::reclaim_for(const Session& waiting) {
  bool coming = false;
  for (auto& [id, session] : shared_.registry.sessions) {
    if (session.model != waiting.model && session.job != waiting.job) continue;
    for (VirtualDevice& device : session.devices) coming |= reclaim(session, device);
  }
  if (coming && !patience_) patience_ = shared_.loop.after(kReturnPatience, [this] { stop_waiting(); });
  return coming;
}

bool IdleMemory::reclaim(const Session& session, VirtualDevice& device) {
  if (!device.ring || !device.task) return false;
  say_idle_allowed(device, false);
  const auto executor = executor_.serving(device);
  if (!executor || session.failed || session.ending || !offers_idle(session, device)) return false;
  ask_for_idle(device);
  if (unanswering_.contains(*executor)) return false;
  awaited_.insert(*executor);
  return true;
}

void IdleMemory::returned(ExecutorId executor) {
  unanswering_.erase(executor);
  if (awaited_.erase(executor) > 0 && awaited_.empty()) resume_delayed();
}

void IdleMemory::stop_waiting() {
  unanswering_.merge(awaited_);
  resume_delayed();
}

void IdleMemory::resume_delayed() {
  patience_.reset();
  awaited_.clear();
  ++resuming_;
  shared_.events.post(IdleReturned{std::exchange(delayed_, {})});
}

void IdleMemory::say_who_may_idle(const policy::Scheduler& scheduler) {
  for (auto& [id, session] : shared_.registry.sessions) {
    for (VirtualDevice& device : session.devices) {
      if (!device.ring || !device.task || !has_device(device.task->state)) continue;
      if (delayed_.empty() && resuming_ == 0 && !scheduler.waits_for(device.task->device)) {
        say_idle_allowed(device, true);
      } else {
        (void)reclaim(session, device);
      }
    }
  }
}

}  // namespace heddle::daemon
