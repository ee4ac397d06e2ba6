#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "client/device/ring_port.h"

// The last kernels and library calls of one device, so that a wait which does not end can say what it waits for. Only
// launches of programs that have managed memory on the device are noted: others pay nothing.
//
// Thread safety: any thread. A lock of its own is the innermost one.
namespace heddle::client {

class RecentLaunches {
 public:
  explicit RecentLaunches(const RingPort& ring) : ring_(ring) {}

  // `name` lives as long as the process. `sequence`: of the launch's record in that stream.
  void note(uint32_t stream, uint64_t sequence, const char* name);
  // The name of the oldest one that has not completed; null where none is known.
  const char* oldest_unfinished() const;

 private:
  struct Launch {
    uint64_t sequence = 0;  // 0: none
    uint32_t stream = 0;
    const char* name = nullptr;
  };
  // More may be in flight; then the oldest of those that are remembered stands for them.
  static constexpr size_t kRemembered = 64;

  const RingPort& ring_;
  mutable std::mutex mutex_;  // guards what follows
  std::array<Launch, kRemembered> launches_;
  size_t next_ = 0;
};

}  // namespace heddle::client
