#include "client/stream/apart.h"

#include <algorithm>

#include "client/stream/enqueue.h"

namespace heddle::client {

// Never destroyed.
ApartTasks& apart_tasks() {
  static auto* const all = new ApartTasks;
  return *all;
}

VirtualDevice* ApartTasks::idle_side_device(VirtualDevice& home) const {
  VirtualDevice* idle = nullptr;
  home.side_devices().for_each([&](VirtualDevice& side) {
    const bool used = std::any_of(where_.begin(), where_.end(), [&](const auto& task) { return task.second == &side; });
    if (!used && side.memory().is_empty()) idle = &side;
  });
  return idle;
}

VirtualDevice* ApartTasks::open(uint64_t task, VirtualDevice& home) {
  const std::lock_guard lock(mutex_);
  const bool alone =
      std::none_of(where_.begin(), where_.end(), [&](const auto& other) { return &other.second->home() == &home; });
  VirtualDevice* side = alone ? nullptr : idle_side_device(home);
  if (!alone && !side) side = runtime().open_side_device(home);
  where_[task] = side ? side : &home;
  return side;
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
  if (where->is_side_device()) {
    (void)follow_home(*where);  // a failure shows at the operation
  } else {
    where->side_devices().begin_inside();
  }
  place.inside = where;
}

void ApartTasks::leave() {
  VirtualDevice*& inside = thread_place().inside;
  if (inside && !inside->is_side_device()) inside->side_devices().end_inside();
  inside = nullptr;
}

}  // namespace heddle::client
