#include "device/software/simt/device_heap.h"

#include <algorithm>
#include <iterator>

#include "core/units.h"

namespace heddle::software {

uint64_t DeviceHeap::allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > UINT64_MAX - kAlignment) return 0;
  bytes = round_up(bytes, kAlignment);
  std::lock_guard lock(mutex_);
  auto place = std::find_if(unused_.begin(), unused_.end(), [=](const auto& piece) { return piece.second >= bytes; });
  if (place == unused_.end()) return 0;
  auto [address, room] = *place;
  unused_.erase(place);
  if (room > bytes) unused_[address + bytes] = room - bytes;
  used_[address] = bytes;
  return address;
}

bool DeviceHeap::free(uint64_t address) {
  std::lock_guard lock(mutex_);
  auto found = used_.find(address);
  if (found == used_.end()) return false;
  uint64_t bytes = found->second;
  used_.erase(found);
  auto after = unused_.lower_bound(address);
  if (after != unused_.end() && after->first == address + bytes) {
    bytes += after->second;
    after = unused_.erase(after);
  }
  if (after != unused_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == address) {
      before->second += bytes;
      return true;
    }
  }
  unused_[address] = bytes;
  return true;
}

}  // namespace heddle::software
