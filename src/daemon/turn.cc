#include "daemon/turn.h"

#include "daemon/alone.h"
#include "daemon/cuda_codes.h"

namespace heddle::daemon {
namespace {

constexpr Duration kLongestTurn = std::chrono::milliseconds(2);  // and what is under way then

}  // namespace

void Turn::run() {
  if (rest_) return;  // in the next round
  bool decided = false;
  const TimePoint until = shared_.now() + kLongestTurn;
  while (shared_.now() < until && shared_.events.begin_turn()) {
    while (auto event = shared_.events.next()) {
      std::visit([this](auto& each) { handle(std::move(each)); }, *event);
      if (shared_.now() >= until) break;
    }
    if (leases_.plan()) shared_.events.books_changed();
    if (!shared_.events.take_books_changed()) continue;
    EagerTasks(tasks_).promote();
    tasks_.decide();
    note_who_is_alone(shared_.registry, spares_who_is_alone());
    if (!TaskSwaps(tasks_).make_room()) EagerTasks(tasks_).launch();
    EagerTasks(tasks_).promote();
    decided = true;
  }
  leases_.decide();
  if (leases_.plan()) shared_.events.books_changed();
  if (shared_.events.leave_rest()) {
    rest_ = shared_.loop.after(Duration{}, [this] {
      rest_.reset();
      run();
    });
  }
  if (!decided) return;
  history_.look();
  tasks_.say_who_may_idle();
  deadline_.reset();
  if (const auto next = tasks_.scheduler().next_deadline())
    deadline_ = shared_.loop.at(*next, [this] { shared_.events.books_changed(); });
}

// Not where a device may be taken back in the middle of work, and not where the administrator wants all protected.
bool Turn::spares_who_is_alone() const {
  return shared_.config.durability.level == DurabilityConfig::Level::kAuto && !leases_.keeps_devices();
}

// Pairs waiting tasks with the device's workers while there are any, then starts the workers that are missing.
void Turn::serve(DeviceId device) {
  while (const auto found = executor_.pair(device)) tasks_.executor_found(*found->session, *found->device);
  executor_.shared_faults().call_away(device);
  workers_.refill(device);
}

// The session's deposits are withdrawn in one group with the worker's.
void Turn::handle(const WorkerGone& event) {
  if (const auto session = executor_.worker_gone(event)) sessions_.released(*session);
  workers_.forget(event.worker);
}

void Turn::handle(const CopyAnswered& event) {
  if (!swaps_.over(event.copy, event.status)) copies_.over(event.copy, event.status);
}

void Turn::handle(MemoryAnswered event) {
  if (event.request.on_host && !segments_.is_for_running(event.request)) return swaps_.space_made(std::move(event));
  if (segments_.may_ask_again(event) && workers_.free_contexts(event.request)) return;
  const auto arrived = segments_.arrived(std::move(event));
  if (!arrived) return;
  if (arrived->none && arrived->segment->swap.place == Segment::Swap::kPromoting)
    return swaps_.no_memory_came(*arrived->session, *arrived->segment, *arrived->none);
  if (arrived->none) return tasks_.fail_session(*arrived->session, kCudaMemoryAllocation, arrived->none->text);
  tasks_.memory_came(*arrived->session, *arrived->segment);
}

void Turn::handle(const LeaseOverdue& event) {
  if (Session* session = shared_.registry.find_session(event.session))
    tasks_.fail_session(*session, kCudaLaunchTimeout, event.text);
}

void Turn::handle(const FreeMemoryReported& event) {
  outside_.reported(event.device, event.free);
  segments_.limit_pool(event.device);
}

}  // namespace heddle::daemon
