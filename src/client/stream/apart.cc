#include "client/stream/apart.h"

#include <algorithm>

#include "client/stream/enqueue.h"

namespace heddle::client {

// Never destroyed.
ApartTasks& apart_tasks() {
  static auto* const all = new ApartTasks;
  return *all;
}

VirtualDevice* ApartTasks::idle_lane(VirtualDevice& home) const {
  VirtualDevice* idle = nullptr;
  home.lanes().for_each([&](VirtualDevice& lane) {
    const bool used = std::any_of(where_.begin(), where_.end(), [&](const auto& task) { return task.second == &lane; });
    if (!used && lane.memory().is_empty()) idle = &lane;
  });
  return idle;
}

VirtualDevice* ApartTasks::open(uint64_t task, VirtualDevice& home) {
  const std::lock_guard lock(mutex_);
  const bool alone =
      std::none_of(where_.begin(), where_.end(), [&](const auto& other) { return &other.second->home() == &home; });
  VirtualDevice* lane = alone ? nullptr : idle_lane(home);
  if (!alone && !lane) lane = runtime().open_lane(home);
  where_[task] = lane ? lane : &home;
  return lane;
}

void ApartTasks::stay_home(uint64_t task, VirtualDevice& home) {
  const std::lock_guard lock(mutex_);
  where_[task] = &home;
}

void ApartTasks::close(uint64_t task) {
  leave();  // an exception may have passed it by
  const std::lock_guard lock(mutex_);
  where_.erase(task);
}

void ApartTasks::enter(uint64_t task) {
  VirtualDevice* where;
  {
    const std::lock_guard lock(mutex_);
    const auto found = where_.find(task);
    if (found == where_.end()) return;
    where = found->second;
  }
  ThreadPlace& place = thread_place();
  if (where->home().index() != static_cast<uint32_t>(place.device)) return;
  if (where->is_lane()) {
    (void)follow_home(*where);  // a failure shows at the operation
  } else {
    where->lanes().begin_inside();
  }
  place.inside = where;
}

void ApartTasks::leave() {
  VirtualDevice*& inside = thread_place().inside;
  if (inside && !inside->is_lane()) inside->lanes().end_inside();
  inside = nullptr;
}

}  // namespace heddle::client
