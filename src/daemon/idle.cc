// The part of Tasks that has idle memory given back: what programs have freed and keep until somebody waits
// (protocol::IdleTable).
//
// While nobody waits heddled hears nothing of it. A request that would wait or be refused is kept from the scheduler
// until those who have something idle have given it back, so that the scheduler never sees memory that nobody uses; and
// while anybody waits, nobody keeps any.

#include <algorithm>

#include "daemon/ring_words.h"
#include "daemon/task_request.h"
#include "daemon/tasks.h"

namespace heddle::daemon {
namespace {

// What a worker may be at: work that its program had issued before it was asked. One that takes longer is not waited
// for again until it has answered.
constexpr Duration kPatience = std::chrono::seconds(1);

}  // namespace

void Tasks::arrive(Session& session, VirtualDevice& device) {
  if (!scheduler_->could_start(request_of(session, device)) && reclaim_for(session)) {
    delayed_.push_back(device.task->id);
    return;
  }
  pass_on(session, device);
}

void Tasks::pass_on(Session& session, VirtualDevice& device) {
  device.task->passed_on = true;
  scheduler_->task_arrived(request_of(session, device), shared_.now());
  settle();
  ask_for_held_back(session, device, false);
}

bool Tasks::must_reclaim(Session& session, const Task& task, Bytes more) {
  if (scheduler_->could_extend(task.id, more) || !reclaim_for(session)) return false;
  delayed_.push_back(task.id);
  return true;
}

// Whether somebody has something idle, and is to be waited for.
bool Tasks::reclaim_for(const Session& waiting) {
  bool coming = false;
  for (auto& [id, session] : shared_.registry.sessions) {
    if (session.model != waiting.model && session.job != waiting.job) continue;
    for (VirtualDevice& device : session.devices) coming |= reclaim(session, device);
  }
  if (coming && !patience_) patience_ = shared_.loop.after(kPatience, [this] { stop_waiting(); });
  return coming;
}

bool Tasks::reclaim(const Session& session, VirtualDevice& device) {
  if (!device.ring || !device.task) return false;
  say_idle_allowed(device, false);
  if (!device.worker || session.failed || session.ending || !offers_idle(session, device)) return false;
  ask_for_idle(device);
  if (unanswering_.contains(device.worker->id)) return false;
  awaited_.insert(device.worker->id);
  return true;
}

void Tasks::reclaimed(WorkerId worker) {
  unanswering_.erase(worker);
  if (awaited_.erase(worker) > 0 && awaited_.empty()) resume_delayed();
}

void Tasks::stop_waiting() {
  unanswering_.merge(awaited_);
  resume_delayed();
}

void Tasks::resume_delayed() {
  patience_.reset();
  awaited_.clear();
  for (const TaskId task : std::exchange(delayed_, {})) {
    const auto [session, device] = owner_of(task);
    if (!session || !device->task || device->task->id != task) continue;
    if (device->task->passed_on) {
      ask_for_held_back(*session, *device, true);
    } else {
      pass_on(*session, *device);
    }
  }
  settle();
}

// Told behind every decision. Who went idle before it was told that somebody waits is asked.
void Tasks::say_who_may_idle() {
  for (auto& [id, session] : shared_.registry.sessions) {
    for (VirtualDevice& device : session.devices) {
      if (!device.ring || !device.task || device.task->state == Task::State::kWaiting) continue;
      if (delayed_.empty() && !scheduler_->waits_for(device.task->device)) {
        say_idle_allowed(device, true);
      } else {
        (void)reclaim(session, device);
      }
    }
  }
}

}  // namespace heddle::daemon
