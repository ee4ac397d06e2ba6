#pragma once

#include <map>

#include "daemon/shared.h"

namespace heddle::daemon {

// After a fault under a GPU's MPS, heddled stops the workers that compute outside of MPS (SIGSTOP) while the GPU's dead
// clients end, contexts are created for programs that wait, and suspects are tried. The driver does that in hundreds of
// steps, and each step waits for its time slice beside such workers. Beside two of them MPS accepts its first client
// after 2.4 s, and after 0.5 s while they are stopped; a trap in a trial takes 2 s, or 0.5 (H100,
// docs/results/2026-11-28-gpu-second.md).
//
// The workers' programs notice a pause of kHeldLongest at most, and then run for at least as long as they were stopped.
// Work that they have already handed to the GPU runs on. A worker on trial is never stopped. A worker whose trial is
// over, and which will move back under MPS, is stopped only while another program has no worker at all. No worker is
// stopped if [dispatch] return_limit is as short as the pause, since a stopped worker cannot return its lease.
//
// If heddled dies meanwhile, the workers stay stopped until its successor continues them (stopped_workers.h).
class HeldBack {
 public:
  static constexpr Duration kHeldLongest = std::chrono::seconds(1);

  explicit HeldBack(Shared& shared) : shared_(shared) {}

  // Called whenever workers or programs of the device have changed. `recovering`: its MPS is being started anew.
  void look(DeviceId device, bool recovering);
  // heddled ends: continues all workers, and stops none from now on.
  void stop();

 private:
  struct Gpu {
    std::optional<TimePoint> since;  // when the first of its workers was stopped
    TimePoint next{};                // before that none may be stopped again
    EventLoop::Timer timer;
  };

  bool is_awaited(DeviceId device, bool recovering) const;
  void hold(Gpu& gpu, DeviceId device);
  void resume(Gpu& gpu, DeviceId device);

  Shared& shared_;
  std::map<DeviceId, Gpu> gpus_;
  bool stopped_ = false;
};

}  // namespace heddle::daemon
