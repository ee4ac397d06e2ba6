#include "worker/in_flight.h"

#include <algorithm>
#include <utility>

#include "core/lock_soon.h"

namespace heddle::worker {

bool InFlight::admits(const WorkKind& kind, const Room& room) {
  if (room.window == Duration::zero()) return true;
  const auto lock = locked_soon(mutex_);
  const Duration estimate = times_.estimate(kind).value_or(room.window);
  const bool admitted = has_next(room) || taken(room) + estimate <= limit(room);
  if (!admitted) awaited_room_ = room;
  return admitted;
}

std::optional<Duration> InFlight::hand_over(uint64_t sequence, uint32_t stream, const WorkKind& kind, Duration window,
                                            std::vector<HeldBy> held) {
  const auto lock = locked_soon(mutex_);
  count_stream(stream);
  const auto known = times_.estimate(kind);
  const Duration estimate = known.value_or(window);
  count(work_.emplace_back(Work{sequence, stream, kind, estimate, std::move(held)}), 1);
  unfenced_ += estimate;
  any_.store(true, std::memory_order_release);
  return known;
}

void InFlight::count(const Work& work, int times) {
  if (!work.held.empty()) {
    held_of_[work.stream] += times * work.estimate;
    return;
  }
  running_ += static_cast<size_t>(times);
  estimated_ += times * work.estimate;
  estimated_of_[work.stream] += times * work.estimate;
}

void InFlight::release(const HeldBy& returned) {
  const auto lock = locked_soon(mutex_);
  for (Work& work : work_) {
    if (work.over || work.held.empty()) continue;
    count(work, -1);
    HeldStreams::release(work.held, returned);
    count(work, 1);
  }
}

void InFlight::count_stream(uint32_t stream) {
  // Mostly the one stream goes on, and nothing is to be counted anew.
  if (streams_ == 1 && latest_[(handed_over_ - 1) % latest_.size()] == stream) {
    latest_[handed_over_++ % latest_.size()] = stream;
    return;
  }
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
  const auto lock = locked_soon(mutex_);
  Work* const work = find(sequence);
  if (!work) return;
  end(*work);
  // The record may come again, with the same sequence.
  if (!work_.empty() && work_.back().over) work_.pop_back();
}

bool InFlight::take_fence_due(Duration window, bool wanted) {
  const bool due = window > Duration::zero() && unfenced_ >= limit({0, window, wanted}) / 4;
  if (due) unfenced_ = {};
  return due;
}

bool InFlight::drained() {
  const auto lock = locked_soon(mutex_);
  awaits_end_ = running_ > 0;
  return !awaits_end_;
}

void InFlight::done(std::span<const Done> done) {
  const auto lock = locked_soon(mutex_);
  for (const auto& [sequence, took] : done) {
    Work* work = find(sequence);
    if (!work) continue;
    if (took > Duration::zero()) times_.add(work->kind, took);
    end(*work);
  }
}

bool InFlight::take_awaited() {
  const auto lock = locked_soon(mutex_);
  const bool room = awaited_room_ && (has_next(*awaited_room_) || taken(*awaited_room_) <= limit(*awaited_room_) / 2);
  const bool end = awaits_end_ && running_ == 0;
  if (room) awaited_room_.reset();
  if (end) awaits_end_ = false;
  return room || end;
}

InFlight::Work* InFlight::find(uint64_t sequence) {
  const auto found = std::lower_bound(work_.begin(), work_.end(), sequence,
                                      [](const Work& work, uint64_t wanted) { return work.sequence < wanted; });
  return found == work_.end() || found->sequence != sequence || found->over ? nullptr : &*found;
}

void InFlight::end(Work& work) {
  count(work, -1);
  work.over = true;
  while (!work_.empty() && work_.front().over) work_.pop_front();
  any_.store(!work_.empty(), std::memory_order_release);
}

}  // namespace heddle::worker
