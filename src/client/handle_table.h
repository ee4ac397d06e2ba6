#pragma once

#include <cstdint>
#include <optional>
#include <vector>

// Handles of streams, events, texture and surface objects: numbers that look like pointers to nobody. They name a slot
// of the ring's tables and the slot's use, so that a stale or made-up handle is recognised without touching memory.
//
//   63..48 tag | 47..40 virtual device + 1 | 39..16 use | 15..0 slot
namespace heddle::client {

inline constexpr uint64_t kStreamTag = 0x4853, kEventTag = 0x4845, kTextureTag = 0x4854;

struct Handle {
  uint32_t device, use, slot;

  static std::optional<Handle> parse(uint64_t tag, uint64_t value) {
    const uint32_t device = (value >> 40) & 0xff;
    if (value >> 48 != tag || device == 0) return std::nullopt;
    return Handle{device - 1, static_cast<uint32_t>(value >> 16) & 0xffffff, static_cast<uint32_t>(value) & 0xffff};
  }
};

// Slots of one kind on one device. Not thread-safe: under the device's lock.
template <class State>
class HandleTable {
 public:
  HandleTable(uint64_t tag, uint32_t slots) : tag_(tag), slots_(slots) {}

  // Takes a slot that is free: never used, or closed and `idle(state)`. The one that was freed longest ago is taken,
  // so that the worker has seen its end. nullopt: all are in use.
  template <class Idle>
  std::optional<uint32_t> open(State state, Idle&& idle) {
    for (uint32_t tried = 0; tried < slots_.size(); ++tried) {
      const uint32_t slot = (next_ + tried) % slots_.size();
      Entry& entry = slots_[slot];
      if (entry.live || !idle(slot, entry.state)) continue;
      entry.state = state;
      entry.live = true;
      entry.use = (entry.use + 1) & 0xffffff;
      next_ = slot + 1;
      return slot;
    }
    return std::nullopt;
  }
  void close(uint32_t slot) { slots_[slot].live = false; }

  uint64_t handle(uint32_t device, uint32_t slot) const {
    return tag_ << 48 | uint64_t{device + 1} << 40 | uint64_t{slots_[slot].use} << 16 | slot;
  }
  bool valid(const Handle& handle) const {
    return handle.slot < slots_.size() && slots_[handle.slot].live && slots_[handle.slot].use == handle.use;
  }
  bool live(uint32_t slot) const { return slots_[slot].live; }
  State& at(uint32_t slot) { return slots_[slot].state; }
  uint32_t size() const { return static_cast<uint32_t>(slots_.size()); }

 private:
  struct Entry {
    State state;
    uint32_t use = 0;
    bool live = false;
  };
  uint64_t tag_;
  std::vector<Entry> slots_;
  uint32_t next_ = 0;
};

}  // namespace heddle::client
