#pragma once

#include <atomic>

#include "client/device/idle_memory.h"
#include "client/device/ring_port.h"
#include "client/link/arena.h"

// The segments of one ring, and what they cost of the device's budget, which its side devices share.
namespace heddle::client {

// What the rings of one device hold, in bytes of segments. Thread-safe.
class Budget {
 public:
  explicit Budget(uint64_t bytes) : bytes_(bytes) {}
  uint64_t bytes() const { return bytes_; }
  uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  void change(uint64_t before, uint64_t now) { held_.fetch_add(now - before, std::memory_order_relaxed); }

 private:
  const uint64_t bytes_;
  std::atomic<uint64_t> held_{0};
};

// Not thread-safe: under the ring's lock.
class DeviceSegments {
 public:
  // [base, base + bytes) is this ring's part of the window. A side device has a `home`, whose budget it shares.
  DeviceSegments(RingPort& ring, uint64_t base, uint64_t bytes, DeviceSegments* home);

  Arena& arena() { return arena_; }
  const Arena& arena() const { return arena_; }
  IdleMemory& idle() { return idle_; }

  // What the program holds, but for what it has freed and stays.
  uint64_t used_bytes() const { return arena_.segment_bytes() - idle_.bytes(); }
  // That at most so far: more never stays idle.
  uint64_t most_used() const { return most_used_; }
  // To be called when used_bytes() has changed.
  void count();
  // What counts against the budget beside this ring's memory.
  uint64_t bytes_beside() const { return budget_.held() - counted_; }
  uint64_t budget_bytes() const { return budget_.bytes(); }
  // What it leaves.
  uint64_t left() const;
  // With so many segment bytes more.
  bool within_budget(uint64_t added) const;

  // The segment's last record is `sequence`: nobody here uses it again.
  void retire(Segment* segment, uint64_t sequence);
  // The same of what the worker has taken from the idle memory.
  void retire_lost();

 private:
  RingPort& ring_;
  Budget own_budget_;  // of a home
  Budget& budget_;
  Arena arena_;
  IdleMemory idle_;
  uint64_t most_used_ = 0;
  uint64_t counted_ = 0;  // in the budget
};

}  // namespace heddle::client
