#pragma once

#include <map>

#include "daemon/shared.h"

namespace heddle::daemon {

// Workers outside of a GPU's MPS are held back (SIGSTOP) behind a fault under it, while processes end there, contexts
// are made for programs that wait, and others are tried. The driver does that in hundreds of steps, each of which waits
// for its slice of time beside programs that compute outside of MPS: beside two of these MPS takes its first client
// again after 2.4 s, while they are held back after 0.5 s, as when the GPU has no others; and a trap in a trial is
// dealt with after 2 s, or 0.5 (H100, docs/results/2026-11-28-gpu-second.md).
//
// That costs those programs a pause, and nothing else: for kHeldLongest at most, and behind it they go on for at least
// as long as they were held back. What they have handed to the GPU goes on meanwhile. Who is tried is never held back;
// whose trial is over, and who will go on under MPS, is only while others have no worker at all.
//
// Nobody is where leases have to be back sooner than that ([dispatch] return_limit).
//
// A heddled that dies meanwhile leaves them stopped; its successor has them go on (stopped_workers.h).
class HeldBack {
 public:
  static constexpr Duration kHeldLongest = std::chrono::seconds(1);

  explicit HeldBack(Shared& shared) : shared_(shared) {}

  // Something has happened there. `recovering`: its MPS is being started anew.
  void look(DeviceId device, bool recovering);
  // heddled ends: nobody stays behind, now and later.
  void stop();

 private:
  struct Gpu {
    std::optional<TimePoint> since;
    TimePoint next{};
    EventLoop::Timer timer;
  };

  bool is_awaited(DeviceId device, bool recovering) const;
  void hold(Gpu& gpu, DeviceId device);
  void let_go(Gpu& gpu, DeviceId device);

  Shared& shared_;
  std::map<DeviceId, Gpu> gpus_;
  bool stopped_ = false;
};

}  // namespace heddle::daemon
