#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>

// What the program said of managed memory in advance (cudaMemAdvise, cudaMemPrefetchAsync), to be told when it asks.
namespace heddle::client {

// As cudaMemLocation has it; type 0: none.
struct HintedPlace {
  int type = 0, id = 0;
  bool operator==(const HintedPlace&) const = default;
};

struct ManagedHint {
  bool read_mostly = false;
  HintedPlace preferred, prefetched;
  std::set<int> accessed_by;  // devices, and -1 for the host
  bool operator==(const ManagedHint&) const = default;
};

// Thread-safe; what it calls, it calls with its lock.
class ManagedHints {
 public:
  // Changes what is said of bytes [address, address + bytes).
  template <class Change>
  void change(uint64_t address, uint64_t bytes, Change&& apply) {
    const std::lock_guard lock(mutex_);
    split(address);
    split(address + bytes);
    fill(address, address + bytes);
    for (auto each = parts_.lower_bound(address); each != parts_.lower_bound(address + bytes); ++each)
      apply(each->second.hint);
  }
  // The memory was freed.
  void forget(uint64_t address, uint64_t bytes);
  // Calls body(hint) for what is said of each part of the range.
  template <class Body>
  void for_each(uint64_t address, uint64_t bytes, Body&& body) const {
    const std::lock_guard lock(mutex_);
    uint64_t at = address;
    const uint64_t end = address + bytes;
    for (auto part = first_after(at); part != parts_.end() && part->first < end; ++part) {
      if (part->first > at) body(ManagedHint{});
      body(part->second.hint);
      at = part->second.end;
    }
    if (at < end) body(ManagedHint{});
  }

 private:
  struct Part {
    uint64_t end = 0;
    ManagedHint hint;
  };
  using Parts = std::map<uint64_t, Part>;

  // Under the lock.
  void split(uint64_t address);
  void fill(uint64_t begin, uint64_t end);
  // The first part that ends behind the address.
  Parts::const_iterator first_after(uint64_t address) const;

  mutable std::mutex mutex_;  // guards what follows
  Parts parts_;               // by first address; they do not overlap
};

}  // namespace heddle::client
