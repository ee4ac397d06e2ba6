#pragma once

#include <array>
#include <atomic>
#include <vector>

#include "worker/session_parts.h"

namespace heddle::worker {

// The thread that takes what the device has done and publishes it. One wake-up may bring many completions; they cost
// one lock and one look at the client's bell together.
class Completions {
 public:
  explicit Completions(const SessionParts& parts) : parts_(parts) {}

  // Returns after stop(), which may come from any thread.
  void run();
  void stop();

 private:
  void take(std::span<const device::Completion> batch);
  bool hold_back(std::span<const device::Completion> batch);
  void show(std::span<const device::Completion> batch);
  void end_in_flight(std::span<const device::Completion> batch);
  void raise(const device::Completion& completion);
  void reach_host_call(uint64_t sequence);

  SessionParts parts_;
  std::atomic<bool> stopping_{false};
  std::array<device::Completion, 64> batch_;
  std::vector<device::Completion> held_back_;  // with the session's fault
  // These keep their memory from batch to batch.
  std::vector<Finished> finished_;
  std::vector<Done> done_;
  std::vector<LongWork::Took> took_;
  std::vector<InFlight::Done> ended_;
};

}  // namespace heddle::worker
