#include "worker/kernel_times.h"

#include <algorithm>
#include <bit>

namespace heddle::worker {
namespace {

using protocol::RecordType;

constexpr int kTypeShift = 56, kHighShift = 24;

// Sizes multiply without overflow: what the validation refuses later has some size here too.
uint64_t size_of(std::initializer_list<uint64_t> factors) {
  uint64_t size = 1;
  for (const uint64_t factor : factors) {
    if (__builtin_mul_overflow(size, factor, &size)) return UINT64_MAX;
  }
  return size > 1ull << 63 ? UINT64_MAX : std::bit_ceil(size);
}

uint64_t what_of(RecordType type, uint64_t high = 0, uint64_t low = 0) {
  return static_cast<uint64_t>(type) << kTypeShift | high << kHighShift | low;
}

}  // namespace

bool needs_device(RecordType type) {
  return type == RecordType::kLaunch || type == RecordType::kCopy || type == RecordType::kFill ||
         type == RecordType::kLibraryCall;
}

bool keeps_order(RecordType type) {
  return needs_device(type) || type == RecordType::kEventRecord || type == RecordType::kEventWait ||
         type == RecordType::kHostCall || type == RecordType::kMarker;
}

WorkKind work_of(const protocol::Record& record) {
  const RecordType type = record.header.type;
  if (type == RecordType::kLaunch) {
    const auto launch = record.as<protocol::LaunchRecord>();
    return {what_of(type, launch.module, launch.kernel), size_of({launch.grid[0], launch.grid[1], launch.grid[2],
                                                                  launch.block[0], launch.block[1], launch.block[2]})};
  }
  if (type == RecordType::kCopy) {
    const auto copy = record.as<protocol::CopyRecord>();
    return {what_of(type, static_cast<uint64_t>(copy.to.place), static_cast<uint64_t>(copy.from.place)),
            size_of({copy.width, copy.height, copy.depth})};
  }
  if (type == RecordType::kFill) {
    const auto fill = record.as<protocol::FillRecord>();
    return {what_of(type), size_of({fill.width, fill.height, fill.depth})};
  }
  const auto call = record.as<protocol::LibraryCallRecord>();
  return {what_of(type, call.library, call.function)};
}

void KernelTimes::add(const WorkKind& kind, Duration took) {
  if (times_.size() == kMostKinds && !times_.contains(kind)) {
    times_.clear();
    found_ = nullptr;
  }
  Times& times = times_[kind];
  times.took[times.count++ % kRemembered] = took;
}

std::optional<Duration> KernelTimes::estimate(const WorkKind& kind) const {
  const Times* const times = find(kind);
  if (!times) return std::nullopt;
  return *std::max_element(times->took.begin(), times->took.end());
}

const KernelTimes::Times* KernelTimes::find(const WorkKind& kind) const {
  if (found_ && asked_ == kind) return found_;
  const auto found = times_.find(kind);
  if (found == times_.end()) return nullptr;
  asked_ = kind;
  return found_ = &found->second;
}

}  // namespace heddle::worker
