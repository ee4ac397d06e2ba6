#include "worker/own_copies.h"

namespace heddle::worker {
namespace {

// A device that does not make a copy of some gigabytes has other troubles.
constexpr Duration kPatience = std::chrono::seconds(10);
// Of less the time says little about the device's speed.
constexpr uint64_t kTelling = 64 * kKiB;

}  // namespace

Result<device::Tag> OwnCopies::copy(device::StreamIndex stream, device::CopyDirection direction, const void* from,
                                    void* to, uint64_t bytes) {
  device::CopyShape shape;
  shape.to.address = reinterpret_cast<uintptr_t>(to);
  shape.from.address = reinterpret_cast<uintptr_t>(from);
  shape.width = bytes;
  const device::Tag tag = kTag | (handed_over_ + 1);
  if (direction == device::CopyDirection::kToHost && bytes >= kTelling) {
    const std::lock_guard lock(mutex_);
    timed_ = {tag, bytes};
  }
  HEDDLE_TRY(context_.copy(stream, direction, shape, tag));
  ++handed_over_;
  return tag;
}

Status OwnCopies::wait_on_stream(device::StreamIndex stream, device::Tag awaited) {
  HEDDLE_TRY(context_.wait(stream, awaited, kTag | (handed_over_ + 1)));
  ++handed_over_;
  return {};
}

std::optional<Duration> OwnCopies::estimate(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!ns_per_byte_) return std::nullopt;
  return Duration(static_cast<int64_t>(*ns_per_byte_ * static_cast<double>(bytes)));
}

bool OwnCopies::wait() {
  context_.flush();
  std::unique_lock lock(mutex_);
  return made_.wait_for(lock, kPatience, [this] { return done_ == handed_over_; }) && !failed_;
}

void OwnCopies::done(const device::Completion& completion) {
  const std::lock_guard lock(mutex_);
  ++done_;
  failed_ |= completion.cuda_error != 0;
  const Duration took = completion.ended - completion.started;
  if (completion.tag == timed_.tag && completion.ended != TimePoint{})
    ns_per_byte_ = static_cast<double>(took.count()) / static_cast<double>(timed_.bytes);
  made_.notify_one();
}

}  // namespace heddle::worker
