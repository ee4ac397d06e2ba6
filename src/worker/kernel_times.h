#pragma once

#include <array>
#include <optional>
#include <unordered_map>

#include "core/units.h"
#include "protocol/ring_reader.h"

namespace heddle::worker {

// What a record asks of the device, as far as its time depends on it: records that are equal here take about as long.
struct WorkKind {
  uint64_t what = 0;  // the type, and the kernel or the library's function
  uint64_t size = 0;  // threads or bytes, rounded up to a power of two
  bool operator==(const WorkKind&) const = default;
};
// Whether the record keeps the device busy. What does not needs no lease.
bool needs_device(protocol::RecordType type);
// Whether the record takes its place among its stream's on the device.
bool keeps_order(protocol::RecordType type);
// Of a record that needs the device. Takes nothing in it for granted.
WorkKind work_of(const protocol::Record& record);

// How long work takes on the device, as the latest of its kind did. Not thread-safe.
class KernelTimes {
 public:
  void add(const WorkKind& kind, Duration took);
  // The longest of the latest kRemembered of that kind; none where there was none yet.
  std::optional<Duration> estimate(const WorkKind& kind) const;

  static size_t hash(const WorkKind& kind) { return (kind.what ^ kind.size << 1) * 0x9e3779b97f4a7c15; }

  static constexpr size_t kRemembered = 8;
  static constexpr size_t kMostKinds = 4096;  // then it begins anew: the program chooses what it launches

 private:
  struct Hash {
    size_t operator()(const WorkKind& kind) const { return hash(kind); }
  };
  struct Times {
    std::array<Duration, kRemembered> took{};
    size_t count = 0;
  };
  const Times* find(const WorkKind& kind) const;

  std::unordered_map<WorkKind, Times, Hash> times_;
  // What was asked for last: mostly it is asked for again.
  mutable WorkKind asked_;
  mutable const Times* found_ = nullptr;
};

}  // namespace heddle::worker
