#include "client/device/device_segments.h"

#include <algorithm>
#include <utility>

namespace heddle::client {
namespace {

// Of a checked program: enough for most, and no more than 128 MiB.
constexpr uint64_t kSegmentsBeforeSharing = 64;

}  // namespace

DeviceSegments::DeviceSegments(RingPort& ring, uint64_t base, uint64_t bytes, DeviceSegments* home)
    : ring_(ring),
      own_budget_(ring.session().welcome().budget_bytes),
      budget_(home ? home->budget_ : own_budget_),
      arena_(base, bytes, &ring.session().segment_count(), ring.buffers()),
      idle_(ring.header()) {
  if (ring.session().checks_kernels()) arena_.share_from(kSegmentsBeforeSharing);
}

void DeviceSegments::count() {
  const uint64_t used = used_bytes();
  most_used_ = std::max(most_used_, used);
  budget_.change(std::exchange(counted_, used), used);
}

bool DeviceSegments::within_budget(uint64_t added) const {
  return added <= budget_bytes() && used_bytes() + bytes_beside() <= budget_bytes() - added;
}

uint64_t DeviceSegments::left() const {
  return budget_bytes() - std::min(budget_bytes(), used_bytes() + bytes_beside());
}

void DeviceSegments::retire(Segment* segment, uint64_t sequence) {
  if (segment->number != 0) ring_.session().forget_segment(segment->number);
  arena_.retire(segment, sequence);
  count();
}

void DeviceSegments::retire_lost() {
  for (Segment* segment : idle_.lost()) retire(segment, 0);
}

}  // namespace heddle::client
