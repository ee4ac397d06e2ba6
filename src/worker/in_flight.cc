#include "worker/in_flight.h"

#include <algorithm>
#include <utility>

namespace heddle::worker {

bool InFlight::admits(const WorkKind& kind, uint32_t stream, Duration window, bool wanted) {
  if (window == Duration::zero()) return true;
  std::lock_guard lock(mutex_);
  const Room room{stream, window, wanted};
  const Duration estimate = times_.estimate(kind).value_or(window);
  const bool admitted = running_ < least() || taken(room) + estimate <= limit(room);
  if (!admitted) awaited_room_ = room;
  return admitted;
}

void InFlight::hand_over(uint64_t sequence, uint32_t stream, const WorkKind& kind, Duration window) {
  std::lock_guard lock(mutex_);
  count_stream(stream);
  const Duration estimate = times_.estimate(kind).value_or(window);
  work_.push_back({sequence, stream, kind, estimate});
  estimated_ += estimate;
  estimated_of_[stream] += estimate;
  unfenced_ += estimate;
  ++running_;
  any_.store(true, std::memory_order_release);
}

void InFlight::count_stream(uint32_t stream) {
  const auto known = [this](uint32_t which) {
    const size_t count = std::min(handed_over_, latest_.size());
    return std::count(latest_.begin(), latest_.begin() + static_cast<std::ptrdiff_t>(count), which);
  };
  uint32_t& place = latest_[handed_over_ % latest_.size()];
  if (handed_over_ >= latest_.size() && known(place) == 1) --streams_;
  if (handed_over_ >= latest_.size()) place = UINT32_MAX;
  streams_ += known(stream) == 0;
  place = stream;
  ++handed_over_;
}

void InFlight::take_back(uint64_t sequence) {
  std::lock_guard lock(mutex_);
  if (Work* work = find(sequence)) end(*work);
}

bool InFlight::take_fence_due(Duration window, bool wanted) {
  std::lock_guard lock(mutex_);
  const bool due = window > Duration::zero() && unfenced_ >= limit(window, wanted) / 4;
  if (due) unfenced_ = {};
  return due;
}

bool InFlight::drained(uint64_t sequence) {
  std::lock_guard lock(mutex_);
  const bool drained = done_before(sequence);
  if (!drained) awaited_end_ = sequence;
  return drained;
}

void InFlight::done(uint64_t sequence, Duration took) {
  std::lock_guard lock(mutex_);
  Work* work = find(sequence);
  if (!work) return;
  if (took > Duration::zero()) times_.add(work->kind, took);
  end(*work);
}

bool InFlight::take_awaited() {
  std::lock_guard lock(mutex_);
  const bool room = awaited_room_ && (running_ < least() || taken(*awaited_room_) <= limit(*awaited_room_) / 2);
  const bool end = awaited_end_ && done_before(*awaited_end_);
  if (room) awaited_room_.reset();
  if (end) awaited_end_.reset();
  return room || end;
}

InFlight::Work* InFlight::find(uint64_t sequence) {
  const auto found = std::lower_bound(work_.begin(), work_.end(), sequence,
                                      [](const Work& work, uint64_t wanted) { return work.sequence < wanted; });
  return found == work_.end() || found->sequence != sequence || found->over ? nullptr : &*found;
}

void InFlight::end(Work& work) {
  work.over = true;
  estimated_ -= work.estimate;
  estimated_of_[work.stream] -= work.estimate;
  --running_;
  while (!work_.empty() && work_.front().over) work_.pop_front();
  any_.store(!work_.empty(), std::memory_order_release);
}

}  // namespace heddle::worker
