#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "core/spare_processors.h"
#include "device/cuda/submission.h"

// One context's operations: gives them to the driver (Submission) and finds out when they are done (InFlight).
//
// Nothing is asked of the driver for each launch but the launch. An event (a fence) is recorded behind what somebody
// may be waiting for (marks, holds, copies), behind every 64th operation, behind the last one where no more comes for
// now (flush) or its end is wanted all the same (fence), and behind what has been under way for a while without one.
// The thread that takes completions looks at the oldest fence of each stream: seldom while more is handed over,
// continually while somebody waits and nothing is, for as long as there are processors to spare; then ever less often.
// So an end that is waited for is noticed within two microseconds, and work that nobody waits for costs no processor.
//
// A program that waits for a stream need not wait for that: where its worker allows it, the device itself writes to the
// stream's word at each fence (report_to).
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
  bool flush();
  void fence();
  void awaited_by(device::Context::IsAwaited is_awaited) { is_awaited_ = std::move(is_awaited); }
  void report_to(device::ProgressWords words);
  void reports(bool on);
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
  bool looks_for_awaited();
  void spin_idle(Duration most) const;
  void spin_busy(Duration most) const;
  bool is_awaited() const { return is_awaited_(in_flight_.urgent() == 0); }

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
  std::vector<Look> looks_;  // this and the next two: of the thread that takes completions
  device::Context::IsAwaited is_awaited_ = [](bool) { return true; };
  std::optional<Looker> looker_;  // since the last news, while somebody waits

  std::atomic<uint64_t> handed_over_{0};
  std::atomic<bool> settled_{true};  // nothing was handed over since the last flush or fence
  std::atomic<bool> wanted_{false};  // wake() was called
};

}  // namespace heddle::cuda
