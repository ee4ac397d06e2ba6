#include "worker/own_copies.h"

namespace heddle::worker {
namespace {

// A device that does not make a copy of some gigabytes has other troubles.
constexpr Duration kPatience = std::chrono::seconds(10);
// Of less the time says little about the device's speed.
constexpr uint64_t kTelling = 64 * kKiB;

}  // namespace

void OwnCopies::pin_later(std::span<std::byte> memory) {
  context_.pin_later(reinterpret_cast<uintptr_t>(memory.data()), Bytes{memory.size()});
}

void OwnCopies::unpin(std::span<std::byte> memory) {
  context_.unpin(reinterpret_cast<uintptr_t>(memory.data()));
}

device::Tag OwnCopies::begin(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ += bytes;
  return kTag | ++handed_over_;
}

void OwnCopies::take_back(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= bytes;
  --handed_over_;
}

Result<device::Tag> OwnCopies::copy(device::StreamIndex stream, device::CopyDirection direction, const void* from,
                                    void* to, uint64_t bytes) {
  device::CopyShape shape;
  shape.to.address = reinterpret_cast<uintptr_t>(to);
  shape.from.address = reinterpret_cast<uintptr_t>(from);
  shape.width = bytes;
  const device::Tag tag = begin(bytes);
  Status copied = context_.copy(stream, direction, shape, tag);
  if (copied) return tag;
  take_back(bytes);
  return tl::unexpected(std::move(copied).error());
}

Status OwnCopies::wait_on_stream(device::StreamIndex stream, device::Tag awaited) {
  Status waits = context_.wait(stream, awaited, begin(0) | kWaitTag);
  if (!waits) take_back(0);
  return waits;
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
  failed_ |= completion.cuda_error != 0;
  if ((completion.tag & kWaitTag) == 0) took_ += completion.ended - completion.started;
  if (++done_ == handed_over_) {
    if (bytes_ >= kTelling) ns_per_byte_ = static_cast<double>(took_.count()) / static_cast<double>(bytes_);
    bytes_ = 0;
    took_ = {};
  }
  made_.notify_one();
}

}  // namespace heddle::worker
