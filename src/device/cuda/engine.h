#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "device/cuda/submission.h"

// One context's operations: gives them to the driver (Submission) and finds out when they are done (InFlight).
//
// Nothing is asked of the driver for each launch but the launch. An event (a fence) is recorded behind what somebody
// may be waiting for (marks, holds, copies), behind every 64th operation, behind the last one where no more comes for
// now (flush) or its end is wanted all the same (fence), and behind what has been under way for a while without one.
// The thread that takes completions looks at the oldest fence of each stream: seldom while more is handed over,
// continually once somebody waits and nothing is, then ever less often, so that a short kernel is noticed within two
// microseconds and a long one costs no processor.
//
// Faults come back from the driver with a look at a fence, or with a call. They are sticky: everything that has not
// completed completes with the code, and so does everything that is handed over later.
//
// Thread safety: as device::Context. One lock guards all state; looks at fences happen outside of it.
namespace heddle::cuda {

class Engine {
 public:
  // A context must be current. `driver` and `window` outlive the engine.
  static Result<std::unique_ptr<Engine>> start(const Driver& driver, CUcontext context, Window& window,
                                               device::PrintSink print);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // As device::Context's.
  Status unmap(uint64_t address, Bytes size);
  Status set_texture(uint64_t handle, const Texture& texture);
  void set_room(Bytes room);
  Status remove_texture(uint64_t handle);

  Status create_stream(device::StreamIndex index, bool non_blocking, int priority);
  Status destroy_stream(device::StreamIndex index);
  Status submit(device::StreamIndex index, device::Tag tag, Work work);
  Status release(device::Tag hold);
  Result<uint32_t> open_library(library::Library library);
  void flush();
  void fence();
  size_t completions(std::span<device::Completion> out, Duration timeout);
  void wake();

  // Makes the context the calling thread's current one, where it is not.
  void make_current() const;
  bool faulted();
  // Kernels or library calls run, or work is kept back.
  bool computes();
  // The driver has said so outside of the engine: everything fails.
  void fail(CUresult sticky);
  // Waits for what is in flight. False where it does not end.
  bool drain(Duration patience);
  // For a process that is about to end with work in flight: destroys nothing that the driver may still use.
  void abandon();

 private:
  Engine(const Driver& driver, CUcontext context, Window& window, device::PrintSink print);
  CUresult flush_streams();
  void announce();

  // Of the thread that takes completions (engine_completions.cc).
  void look(std::unique_lock<std::mutex>& lock);
  bool look_at_heads(std::unique_lock<std::mutex>& lock);
  void look_at_all(std::unique_lock<std::mutex>& lock);
  bool ask(Look& look, bool prints);
  void rest(std::unique_lock<std::mutex>& lock, TimePoint deadline);
  void spin_idle(Duration most) const;
  void spin_busy(Duration most) const;

  const Driver& driver_;
  const CUcontext context_;
  Window& window_;
  const uint64_t id_;  // of this engine in this process

  std::mutex mutex_;
  std::condition_variable changed_;
  InFlight in_flight_;
  Libraries libraries_;
  Textures textures_;
  Submission submission_;
  bool woken_ = false, sleeping_ = false;
  std::vector<Look> looks_;  // of the thread that takes completions

  std::atomic<uint64_t> handed_over_{0};
  std::atomic<bool> wanted_{false};  // wake() was called
};

}  // namespace heddle::cuda
