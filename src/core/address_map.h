#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace heddle {

// What lies where: ranges of addresses that do not overlap, each with a value, in the order of their addresses.
template <class T>
class AddressMap {
 public:
  struct Range {
    uint64_t address = 0, bytes = 0;
    T value{};
    uint64_t end() const { return address + bytes; }
    bool contains(uint64_t at) const { return at - address < bytes; }
  };

  // False, and nothing has changed, for one that is empty, overlaps another or passes the last address.
  bool add(uint64_t address, uint64_t bytes, T value) {
    if (bytes == 0 || address + bytes < address) return false;
    const auto next = behind(address);
    if (next != ranges_.end() && next->address < address + bytes) return false;
    if (next != ranges_.begin() && std::prev(next)->end() > address) return false;
    ranges_.insert(next, {address, bytes, std::move(value)});
    return true;
  }
  // The one that begins there; false where none does.
  bool remove(uint64_t address) {
    const auto next = behind(address);
    if (next == ranges_.begin() || std::prev(next)->address != address) return false;
    ranges_.erase(std::prev(next));
    return true;
  }

  // Null where nothing lies there.
  const Range* find(uint64_t address) const {
    const auto next = behind(address);
    return next != ranges_.begin() && std::prev(next)->contains(address) ? &*std::prev(next) : nullptr;
  }

  // Calls visit(range) for each that a pointer may be meant to lead to: the one that it points into, one that begins
  // soon behind it (an array whose elements are counted from 1), and where there is none, one that ends there.
  static constexpr uint64_t kSoon = 4096;
  template <class Visit>
  void each_meant_by(uint64_t pointer, Visit visit) const {
    const auto next = behind(pointer);
    const bool soon = next != ranges_.end() && next->address - pointer < kSoon;
    if (soon) visit(*next);
    if (next == ranges_.begin()) return;
    const Range& before = *std::prev(next);
    if (before.contains(pointer) || (!soon && before.end() == pointer)) visit(before);
  }

  auto begin() const { return ranges_.begin(); }
  auto end() const { return ranges_.end(); }

 private:
  // The first that begins behind `address`.
  auto behind(uint64_t address) const {
    return std::upper_bound(ranges_.begin(), ranges_.end(), address,
                            [](uint64_t at, const Range& range) { return at < range.address; });
  }

  std::vector<Range> ranges_;
};

}  // namespace heddle
