#include "client/device/idle_memory.h"

#include <algorithm>

namespace heddle::client {

bool IdleMemory::offer(Segment* segment) {
  auto& slots = header_.idle.segments;
  const auto slot = std::find_if(std::begin(slots), std::end(slots),
                                 [](const auto& each) { return each.load(std::memory_order_relaxed) == 0; });
  if (slot == std::end(slots)) return false;
  entries_.push_back({segment, slot});
  bytes_ += segment->bytes;
  slot->store(segment->number, std::memory_order_seq_cst);
  return true;
}

Segment* IdleMemory::take_fitting(uint64_t bytes) {
  for (size_t i = entries_.size(); i-- > 0;) {
    Segment* const segment = entries_[i].segment;
    if (segment->bytes == bytes && take_at(i)) return segment;
  }
  return nullptr;
}

Segment* IdleMemory::take_oldest() {
  for (size_t i = 0; i < entries_.size(); ++i) {
    Segment* const segment = entries_[i].segment;
    if (take_at(i)) return segment;
  }
  return nullptr;
}

bool IdleMemory::take(const Segment* segment) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].segment == segment) return take_at(i);
  }
  return false;
}

bool IdleMemory::take_at(size_t index) {
  uint64_t offered = entries_[index].segment->number;
  if (!entries_[index].slot->compare_exchange_strong(offered, 0)) return false;
  erase(index);
  return true;
}

// Its slot is this side's again: the worker is done with one that it has taken.
std::vector<Segment*> IdleMemory::lost() {
  std::vector<Segment*> lost;
  for (size_t i = 0; i < entries_.size();) {
    if (entries_[i].slot->load(std::memory_order_acquire) == entries_[i].segment->number) {
      ++i;
      continue;
    }
    lost.push_back(entries_[i].segment);
    entries_[i].slot->store(0, std::memory_order_release);
    erase(i);
  }
  return lost;
}

void IdleMemory::erase(size_t index) {
  bytes_ -= entries_[index].segment->bytes;
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace heddle::client
