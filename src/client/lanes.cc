// VirtualDevice: its lanes (apart.h).

#include <algorithm>

#include "client/runtime.h"

namespace heddle::client {

void VirtualDevice::add_lane(VirtualDevice* lane) {
  lane->next_lane_ = lanes_.load(std::memory_order_relaxed);
  lanes_.store(lane, std::memory_order_release);
}

Answer<bool> VirtualDevice::begin_apart(VirtualDevice& lane) {
  const Lock lock = ring_.lock(), lane_lock = lane.lock();
  HEDDLE_ANSWER(failure());
  resume();
  const bool with_home = !task_.begun();
  protocol::BeginTask first{0, {index()}};
  if (with_home) {
    auto offered = task_.offer();
    if (!offered) return tl::unexpected(std::move(offered).error());
    first = *offered;
  }
  auto granted = Answer<bool>(false);
  if (auto second = lane.task_.offer()) granted = session().begin_apart(first, *second);
  if (!granted || !*granted) {
    lane.task_.declined();
    lane.task_.forget_need();
    if (with_home) task_.declined();
    return granted;
  }
  if (with_home) HEDDLE_ANSWER(task_.accepted());
  HEDDLE_ANSWER(lane.task_.accepted());
  return true;
}

bool VirtualDevice::is_empty() {
  const Lock lock = ring_.lock();
  return arena_.buffer_count() == 0 && !task_.begun();
}

// While nobody is inside, what came last came from outside, unless it is what an insider left.
void VirtualDevice::look_outside() {
  const uint64_t last = streams.at(0).last;
  if (insiders_ == 0 && last != inside_last_) outside_last_ = last;
}

void VirtualDevice::published_meanwhile(uint32_t stream, uint64_t sequence) {
  if (stream == 0 && thread_place().inside != this) outside_last_ = sequence;
}

void VirtualDevice::begin_inside() {
  const Lock lock = ring_.lock();
  look_outside();
  ++insiders_;
}

void VirtualDevice::end_inside() {
  const Lock lock = ring_.lock();
  if (--insiders_ == 0) inside_last_ = streams.at(0).last;
}

std::vector<Mark> VirtualDevice::outside_work() {
  const Lock lock = ring_.lock();
  look_outside();
  std::vector<Mark> marks;
  for (uint32_t i = 0; i < streams.size(); ++i) {
    const StreamState& stream = streams.at(i);
    const uint64_t last = i == 0 ? outside_last_ : stream.last;
    if (!stream.non_blocking && !ring_.stream_reached(i, last)) marks.push_back({i, last});
  }
  return marks;
}

bool VirtualDevice::must_follow(const std::vector<Mark>& marks) {
  const Lock lock = ring_.lock();
  if (marks.empty() || marks == followed_) return false;
  followed_ = marks;
  return true;
}

bool VirtualDevice::reached(const std::vector<Mark>& marks) const {
  return std::all_of(marks.begin(), marks.end(),
                     [&](const Mark& mark) { return ring_.stream_reached(mark.stream, mark.sequence); });
}

Done VirtualDevice::synchronize_with_lanes() {
  HEDDLE_ANSWER(synchronize());
  Done all;
  for_each_lane([&](VirtualDevice& lane) {
    if (all) all = lane.synchronize();
  });
  return all;
}

}  // namespace heddle::client
