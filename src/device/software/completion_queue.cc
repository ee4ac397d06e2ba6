#include "device/software/completion_queue.h"

#include <algorithm>

namespace heddle::software {

void CompletionQueue::push(device::Completion completion) {
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(completion));
  arrived_.notify_one();
}

size_t CompletionQueue::take(std::span<device::Completion> out, Duration timeout) {
  std::unique_lock lock(mutex_);
  auto ready = [this] { return woken_ || !queue_.empty(); };
  if (timeout < Duration::zero()) {
    arrived_.wait(lock, ready);
  } else if (timeout > Duration::zero()) {
    arrived_.wait_for(lock, timeout, ready);
  }
  woken_ = false;
  size_t count = std::min(out.size(), queue_.size());
  std::move(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(count), out.begin());
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

void CompletionQueue::wake() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  arrived_.notify_one();
}

}  // namespace heddle::software
