#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/texture.h"

// Handles of streams, events, texture and surface objects: numbers that look like pointers to nobody. They name a slot
// of the ring's tables and the slot's use, so that a stale or made-up handle is recognised without touching memory. The
// numbers of one table rise from handle to handle, since that is how GPUs find texture and surface objects (device.h).
//
//   63..48 tag | 47..40 virtual device + 1 | 39..0 kFirstTextureNumber + kTextureNumberStep * (round * slots + slot)
namespace heddle::client {

inline constexpr uint64_t kStreamTag = 0x4853, kEventTag = 0x4845, kTextureTag = 0x4854;

struct Handle {
  uint32_t device;
  uint64_t number;

  static std::optional<Handle> parse(uint64_t tag, uint64_t value) {
    const uint32_t device = (value >> 40) & 0xff;
    if (value >> 48 != tag || device == 0) return std::nullopt;
    return Handle{device - 1, value & ((1ull << 40) - 1)};
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
    for (uint64_t number = next_; number < next_ + slots_.size(); ++number) {
      const auto slot = static_cast<uint32_t>(number % slots_.size());
      Entry& entry = slots_[slot];
      if (entry.live || !idle(slot, entry.state)) continue;
      entry = {state, number, true};
      next_ = number + 1;
      ++open_;
      return slot;
    }
    return std::nullopt;
  }
  void close(uint32_t slot) {
    if (std::exchange(slots_[slot].live, false)) --open_;
  }

  uint64_t handle(uint32_t device, uint32_t slot) const {
    return tag_ << 48 | uint64_t{device + 1} << 40 | (kFirstTextureNumber + kTextureNumberStep * slots_[slot].number);
  }
  // The slot that it names; nullopt where it is stale or made up.
  std::optional<uint32_t> find(const Handle& handle) const {
    const uint64_t steps = handle.number - kFirstTextureNumber, number = steps / kTextureNumberStep;
    if (handle.number < kFirstTextureNumber || steps % kTextureNumberStep != 0) return std::nullopt;
    const Entry& entry = slots_[number % slots_.size()];
    if (!entry.live || entry.number != number) return std::nullopt;
    return static_cast<uint32_t>(number % slots_.size());
  }
  bool live(uint32_t slot) const { return slots_[slot].live; }
  State& at(uint32_t slot) { return slots_[slot].state; }
  uint32_t size() const { return static_cast<uint32_t>(slots_.size()); }
  // How many of them are in use.
  uint32_t open_count() const { return open_; }

 private:
  struct Entry {
    State state;
    uint64_t number = 0;
    bool live = false;
  };
  uint64_t tag_;
  std::vector<Entry> slots_;
  uint64_t next_ = 0;  // number
  uint32_t open_ = 0;
};

}  // namespace heddle::client
