#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>

#include "device/device.h"

namespace heddle::software {

// Completions on their way from the threads of a context to the one that takes them, in the order of push().
// Thread safe.
class CompletionQueue {
 public:
  void push(device::Completion completion);
  // As device::Context::completions().
  size_t take(std::span<device::Completion> out, Duration timeout);
  // Ends one take(), the current one or the next.
  void wake();

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<device::Completion> queue_;
  bool woken_ = false;
};

}  // namespace heddle::software
