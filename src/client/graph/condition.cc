#include "client/graph/condition.h"

#include <atomic>
#include <cstring>
#include <unordered_map>

#include "client/runtime.h"

namespace heddle::client {
namespace {

// Never destroyed, like the graphs.
struct LiveConditions {
  std::mutex mutex;
  std::unordered_map<cudaGraphConditionalHandle, std::weak_ptr<Condition>> conditions;
};
LiveConditions& live_conditions() {
  static auto* const all = new LiveConditions;
  return *all;
}

}  // namespace

Answer<std::shared_ptr<Condition>> Condition::make(uint32_t value, bool assigned) {
  auto device = runtime().current_device();
  if (!device) return tl::unexpected(std::move(device).error());
  auto place = runtime().host_memory().allocate((*device)->index(), sizeof value, HostMemory::kPinned);
  if (!place) return tl::unexpected(std::move(place).error());
  std::shared_ptr<Condition> made(new Condition(**device, place->address, value, assigned));
  if (place->new_segment != 0) HEDDLE_ANSWER(runtime().announce_host_segment(place->new_segment));
  std::memcpy(reinterpret_cast<void*>(place->address), &value, sizeof value);
  const std::lock_guard lock(live_conditions().mutex);
  live_conditions().conditions[made->handle()] = made;
  return made;
}

Answer<std::shared_ptr<Condition>> Condition::find(cudaGraphConditionalHandle handle) {
  const std::lock_guard lock(live_conditions().mutex);
  const auto found = live_conditions().conditions.find(handle);
  auto condition = found == live_conditions().conditions.end() ? nullptr : found->second.lock();
  if (!condition) return refuse(cudaErrorInvalidValue);
  return condition;
}

// Instantiated graphs keep it until their work is done.
Condition::~Condition() {
  {
    const std::lock_guard lock(live_conditions().mutex);
    live_conditions().conditions.erase(address_);
  }
  (void)runtime().host_memory().release(address_);
}

uint32_t Condition::value() const {
  return std::atomic_ref(*reinterpret_cast<uint32_t*>(address_)).load(std::memory_order_acquire);
}

Condition::Uses::Uses(const std::vector<std::shared_ptr<Condition>>& conditions) {
  for (const auto& condition : conditions) locks_.emplace_back(condition->mutex_);
}

Done Condition::assign(const StreamRef& stream) {
  if (used_until_ != 0) HEDDLE_ANSWER(enqueue_wait(stream, used_until_));
  if (!assigned_) return {};
  auto place = place_of(reinterpret_cast<const void*>(address_));
  if (!place) return tl::unexpected(std::move(place).error());
  auto filled = enqueue_fill(stream, {*place, {sizeof default_, 1, 1}, default_, sizeof default_});
  return filled ? Done{} : Done(tl::unexpected(std::move(filled).error()));
}

}  // namespace heddle::client
