#include "device/software/simt/check/clocks.h"

#include <algorithm>

#include "device/software/simt/check/each_lane.h"

namespace heddle::software {
namespace {

void raise_to(std::span<uint32_t> clock, std::span<const uint32_t> other) {
  for (size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

}  // namespace

Clocks::Clocks(uint32_t threads) : threads_(threads) {
  reset();
}

void Clocks::reset() {
  now_.assign(threads_, 1);
  by_all_.assign(threads_, 0);
  by_warp_.assign(size_t{(threads_ + kLanes - 1) / kLanes} * threads_, 0);
  by_thread_.assign(threads_, {});
}

void Clocks::meet_all() {
  by_all_ = now_;
  for (uint32_t& time : now_) ++time;
  for (Clock& clock : by_thread_) clock.clear();
}

void Clocks::meet(uint32_t warp, uint32_t lanes, bool whole) {
  if (!whole) {
    Clock all;
    for_each_lane(lanes, [&](uint32_t lane) { release(warp * kLanes + lane, all); });
    for_each_lane(lanes, [&](uint32_t lane) { acquire(warp * kLanes + lane, all); });
    return;
  }
  const std::span<uint32_t> heard(by_warp_.data() + row(warp * kLanes), threads_);
  for_each_lane(lanes, [&](uint32_t lane) {
    const uint32_t thread = warp * kLanes + lane;
    if (!by_thread_[thread].empty()) raise_to(heard, by_thread_[thread]);
    by_thread_[thread].clear();
    heard[thread] = now_[thread]++;
  });
}

void Clocks::release(uint32_t thread, Clock& into) {
  into.resize(threads_);
  raise_to(into, by_all_);
  raise_to(into, {by_warp_.data() + row(thread), threads_});
  if (!by_thread_[thread].empty()) raise_to(into, by_thread_[thread]);
  into[thread] = now_[thread]++;
}

void Clocks::acquire(uint32_t thread, const Clock& from) {
  by_thread_[thread].resize(threads_);
  raise_to(by_thread_[thread], from);
}

}  // namespace heddle::software
