#pragma once

#include <mutex>

namespace heddle {

// Locks without sleeping at once, for threads that have a lock for microseconds at a time, ever again: to sleep and to
// be woken takes more than that, and the one who wakes pays for it too. After some tens of microseconds it sleeps.
inline void lock_soon(std::unique_lock<std::mutex>& lock) {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    if (lock.try_lock()) return;
    __builtin_ia32_pause();
  }
  lock.lock();
}
inline std::unique_lock<std::mutex> locked_soon(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::defer_lock);
  lock_soon(lock);
  return lock;
}

}  // namespace heddle
