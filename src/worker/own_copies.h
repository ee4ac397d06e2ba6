#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>

#include "device/device.h"

namespace heddle::worker {

// Copies that the worker makes for itself, for no record: modules' variables, and memory that epochs save. Issuer's
// thread, but for done().
class OwnCopies {
 public:
  // Tags with this bit are theirs.
  static constexpr device::Tag kTag = device::kUnreportedTag;
  // Those of waits have this one, too.
  static constexpr device::Tag kWaitTag = 1ull << 62;

  explicit OwnCopies(device::Context& context) : context_(context) {}

  // Host memory that copies will start from or end at: the device may pin it. No copy may be under way there when it is
  // unpinned.
  void pin_later(std::span<std::byte> memory);
  void unpin(std::span<std::byte> memory);
  // Returns its tag.
  Result<device::Tag> copy(device::StreamIndex stream, device::CopyDirection direction, const void* from, void* to,
                           uint64_t bytes);
  // The stream goes on behind one that was handed over on any.
  Status wait_on_stream(device::StreamIndex stream, device::Tag awaited);
  // How long copies of so many bytes take, by the latest that had enough of them to tell. None: not known yet.
  std::optional<Duration> estimate(uint64_t bytes);
  // Until all that were handed over are made. False where the device has failed at one, or does not make them.
  bool wait();
  // The device has made one. Any thread.
  void done(const device::Completion& completion);

 private:
  device::Tag begin(uint64_t bytes);
  void take_back(uint64_t bytes);

  device::Context& context_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable made_;
  uint64_t handed_over_ = 0, done_ = 0;
  bool failed_ = false;
  // Since none was under way: a GPU tells only how long several took together, and shares that out evenly.
  uint64_t bytes_ = 0;
  Duration took_{};
  std::optional<double> ns_per_byte_;
};

}  // namespace heddle::worker
