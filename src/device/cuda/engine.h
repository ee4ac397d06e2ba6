#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "device/cuda/capture.h"
#include "device/cuda/event_clock.h"
#include "device/cuda/libraries.h"
#include "device/cuda/streams.h"
#include "device/cuda/textures.h"
#include "device/cuda/window.h"

// Gives the operations of one context to the driver and finds out when they are done.
//
// Nothing is asked of the driver for each launch but the launch. An event (a fence) is recorded behind what somebody
// may be waiting for (marks, holds, copies), behind every 64th operation, behind the last one where no more comes for
// now (flush), and behind what has been under way for a while without one. The thread that takes completions looks at
// the oldest fence of each stream: continually at first, then ever less often, so that a short kernel is noticed within
// a microsecond and a long one costs no processor.
//
// Times come from the fences' events; operations that share a fence share the time between two fences evenly.
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
  ~Engine();
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
  size_t completions(std::span<device::Completion> out, Duration timeout);
  void wake();

  // Makes the context the calling thread's current one, where it is not.
  void make_current() const;
  bool faulted();
  // Waits for what is in flight. False where it does not end.
  bool drain(Duration patience);
  // For a process that is about to end with work in flight: destroys nothing that the driver may still use.
  void abandon();

 private:
  Engine(const Driver& driver, CUcontext context, Window& window, device::PrintSink print);
  Status begin();

  // Handing over (engine.cc). All with the lock held.
  Status issue(Stream& stream, Operation operation, Work& work);
  Status issue_work(Stream& stream, Operation operation, LaunchWork& work);
  Status issue_work(Stream& stream, Operation operation, CopyWork& work);
  Status issue_work(Stream& stream, Operation operation, FillWork& work);
  Status issue_work(Stream& stream, Operation operation, LibraryWork& work);
  Status issue_work(Stream& stream, Operation operation, MarkWork& work);
  Status issue_work(Stream& stream, Operation operation, WaitWork& work);
  Status issue_work(Stream& stream, Operation operation, HoldWork& work);
  Status issue_unblocked();
  CUresult keep_legacy_order(Stream& stream);
  CUresult follow(Stream& stream, Stream& other, uint64_t& seen);
  CUresult fence(Stream& stream, bool urgent);
  CUresult allow_shared(LoadedKernel& kernel, uint32_t bytes);
  CUresult followed(const Stream& stream, CUresult result, const device::CopyEnd& to, uint64_t bytes);
  Status append(Stream& stream, Operation operation, CUresult result, const char* what, bool urgent);
  void announce();

  // Completing (engine_completions.cc).
  struct Look {
    Stream* stream;
    Fence fence;
    CUresult result;
    TimePoint ended;
  };
  void look(std::unique_lock<std::mutex>& lock);
  bool look_at_heads(std::unique_lock<std::mutex>& lock);
  void look_at_all(std::unique_lock<std::mutex>& lock);
  bool ask(Look& look, bool prints);
  void complete_found();
  void pass(Stream& stream, const Look& passed);
  void fence_old();
  void complete(Stream& stream, Operation operation, TimePoint started, TimePoint ended, uint32_t cuda_error,
                std::string text);
  void fault(CUresult result, std::string text);
  void fault(uint32_t cuda_error, std::string text);
  void fail(Stream& stream, std::string& text);
  std::string suspects() const;
  bool computing() const;
  void rest(std::unique_lock<std::mutex>& lock, TimePoint deadline);
  void spin(Duration most, bool until_more) const;
  size_t take(std::span<device::Completion> out);

  const Driver& driver_;
  const CUcontext context_;
  Window& window_;
  const uint64_t id_;  // of this engine in this process

  std::mutex mutex_;
  std::condition_variable changed_;
  StreamTable streams_;
  StagingPool staging_;
  Libraries libraries_;
  Textures textures_;
  PrintCapture capture_;
  EventClock clock_;
  std::deque<device::Completion> done_;
  std::vector<void*> arguments_;  // of the launch at hand
  uint64_t last_sequence_ = 0;
  uint64_t in_flight_ = 0;                        // operations that the driver has
  uint64_t printing_ = 0;                         // of these, kernels that may print
  uint32_t fault_ = 0;                            // CUDA's code
  bool device_lost_ = false, bystander_ = false;  // with it
  bool woken_ = false, sleeping_ = false;
  TimePoint last_activity_{};
  std::vector<Look> looks_;  // of the thread that takes completions

  std::atomic<uint64_t> handed_over_{0};
  std::atomic<uint32_t> urgent_{0};  // fences that somebody may be waiting for
  std::atomic<bool> wanted_{false};  // wake() was called
};

}  // namespace heddle::cuda
