#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace heddle::client {

// Pointers to objects that never end. One thread at a time adds, any thread reads meanwhile.
template <class T, uint32_t kMost>
class AddOnlyList {
 public:
  void add(T* object) {
    const uint32_t count = count_.load(std::memory_order_relaxed);
    objects_[count] = object;
    count_.store(count + 1, std::memory_order_release);
  }
  uint32_t size() const { return count_.load(std::memory_order_acquire); }
  T* operator[](uint32_t index) const { return objects_[index]; }

 private:
  std::array<T*, kMost> objects_{};
  std::atomic<uint32_t> count_{0};
};

}  // namespace heddle::client
