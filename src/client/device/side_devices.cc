#include "client/device/side_devices.h"

#include <algorithm>

namespace heddle::client {

using Lock = RingPort::Lock;

// While nobody is inside, what came last came from outside, unless it is what an insider left.
void SideDevices::look_outside() {
  const uint64_t last = streams_.at(0).last;
  if (insiders_ == 0 && last != inside_last_) outside_last_ = last;
}

void SideDevices::begin_inside() {
  const Lock lock = ring_.lock();
  look_outside();
  ++insiders_;
}

void SideDevices::end_inside() {
  const Lock lock = ring_.lock();
  if (--insiders_ == 0) inside_last_ = streams_.at(0).last;
}

std::vector<Mark> SideDevices::outside_work() {
  const Lock lock = ring_.lock();
  look_outside();
  std::vector<Mark> marks;
  for (uint32_t i = 0; i < streams_.size(); ++i) {
    const StreamState& stream = streams_.at(i);
    const uint64_t last = i == 0 ? outside_last_ : stream.last;
    if (!stream.non_blocking && !ring_.stream_reached(i, last)) marks.push_back({i, last});
  }
  return marks;
}

bool SideDevices::must_follow(const std::vector<Mark>& marks) {
  const Lock lock = ring_.lock();
  if (marks.empty() || marks == followed_) return false;
  followed_ = marks;
  return true;
}

bool SideDevices::reached(const std::vector<Mark>& marks) const {
  return std::all_of(marks.begin(), marks.end(),
                     [&](const Mark& mark) { return ring_.stream_reached(mark.stream, mark.sequence); });
}

}  // namespace heddle::client
