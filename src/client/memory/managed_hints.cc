#include "client/memory/managed_hints.h"

#include <iterator>

namespace heddle::client {

ManagedHints::Parts::const_iterator ManagedHints::first_after(uint64_t address) const {
  auto part = parts_.upper_bound(address);
  if (part != parts_.begin() && std::prev(part)->second.end > address) --part;
  return part;
}

// No part reaches over the address.
void ManagedHints::split(uint64_t address) {
  auto part = parts_.lower_bound(address);
  if (part == parts_.begin()) return;
  --part;
  if (part->second.end <= address) return;
  parts_.emplace(address, Part{part->second.end, part->second.hint});
  part->second.end = address;
}

// Every byte belongs to a part.
void ManagedHints::fill(uint64_t begin, uint64_t end) {
  for (auto part = parts_.lower_bound(begin); begin < end;) {
    const uint64_t next = part == parts_.end() || part->first > end ? end : part->first;
    if (begin < next) part = std::next(parts_.emplace(begin, Part{next, {}}).first);
    if (part == parts_.end() || part->first >= end) return;
    begin = part->second.end;
    ++part;
  }
}

void ManagedHints::forget(uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  split(address);
  split(address + bytes);
  parts_.erase(parts_.lower_bound(address), parts_.lower_bound(address + bytes));
}

}  // namespace heddle::client
