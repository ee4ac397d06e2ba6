#include "worker/own_copies.h"

namespace heddle::worker {
namespace {

// A device that does not make a copy of some gigabytes has other troubles.
constexpr Duration kPatience = std::chrono::seconds(10);

}  // namespace

Result<device::Tag> OwnCopies::copy(device::StreamIndex stream, device::CopyDirection direction, const void* from,
                                    void* to, uint64_t bytes) {
  device::CopyShape shape;
  shape.to.address = reinterpret_cast<uintptr_t>(to);
  shape.from.address = reinterpret_cast<uintptr_t>(from);
  shape.width = bytes;
  const device::Tag tag = kTag | (handed_over_ + 1);
  HEDDLE_TRY(context_.copy(stream, direction, shape, tag));
  ++handed_over_;
  return tag;
}

Status OwnCopies::wait_on_stream(device::StreamIndex stream, device::Tag awaited) {
  HEDDLE_TRY(context_.wait(stream, awaited, kTag | (handed_over_ + 1)));
  ++handed_over_;
  return {};
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
  made_.notify_one();
}

}  // namespace heddle::worker
