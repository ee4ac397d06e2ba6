#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "protocol/socket.h"

namespace heddle::worker {

// heddled's messages on their way from the socket's thread to the issuer, which alone may touch the device.
// Thread-safe.
class Inbox {
 public:
  void put(protocol::Packet packet) {
    std::lock_guard lock(mutex_);
    packets_.push_back(std::move(packet));
    filled_.store(true, std::memory_order_release);
  }
  // Costs one load where nothing is there.
  std::vector<protocol::Packet> take() {
    if (!filled_.load(std::memory_order_acquire)) return {};
    std::lock_guard lock(mutex_);
    filled_.store(false, std::memory_order_relaxed);
    return std::exchange(packets_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<protocol::Packet> packets_;
  std::atomic<bool> filled_{false};
};

}  // namespace heddle::worker
