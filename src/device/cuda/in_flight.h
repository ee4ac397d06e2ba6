#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "device/cuda/capture.h"
#include "device/cuda/event_clock.h"
#include "device/cuda/streams.h"

namespace heddle::cuda {

// A fence that the driver is asked about, and what it said.
struct Look {
  Stream* stream;
  Fence fence;
  CUresult result;
  TimePoint ended;  // where it has been passed
};

// What the driver has been given and has not finished, and what is done and was not taken yet: the books of a context's
// operations, with the fences behind them, and its fault.
//
// Operations that share a fence share the time between two fences evenly. A fault fails everything that has not
// completed, and whatever is handed over later.
//
// Thread safety: the owner's lock, but for urgent().
class InFlight {
 public:
  InFlight(const Driver& driver, device::PrintSink print);
  // Makes the legacy stream. A context must be current.
  Status begin();
  // Destroys the streams. Nothing may be in flight.
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  // For a process that is about to end with work in flight: destroys nothing that the driver may still use.
  void abandon();

  StreamTable& streams() { return streams_; }
  StagingPool& staging() { return staging_; }
  EventClock& clock() { return clock_; }

  // An operation that is handed over now.
  Operation begin_operation(device::Tag tag);
  // Takes what was issued into the books; or refuses it, where the driver did; or fails everything, where that is lost.
  Status append(Stream& stream, Operation operation, CUresult result, const char* what, bool urgent);
  // An event behind all that the stream was given; `urgent`: somebody may wait for it, and the device reports it.
  CUresult fence(Stream& stream, bool urgent);
  // Where the device itself reports how far streams are (device::Context::report_to), and whether it does from now on.
  void report_to(device::ProgressWords words) { words_ = words; }
  void reports(bool on) { reports_ = on && words_.stride != 0; }
  // It is done without the driver, or fails for the fault that was before it.
  void complete_at_once(Stream& stream, Operation operation);
  // A kernel that may print is about to be launched; the driver has refused it.
  void will_print();
  void does_not_print();

  // Completes what was found done, in the order in which it happened, over all streams; then a fault fails the rest.
  void complete_found(std::vector<Look>& looks);
  // What is wanted, or runs for some time, without a fence gets one, so that it is found done.
  void fence_old();
  void fail_all(CUresult result) { fault(result, {}); }
  // Moves completions to `out`, in order, and returns how many.
  size_t take(std::span<device::Completion> out);

  bool faulted() const { return fault_ != 0; }
  bool empty() const { return in_flight_ == 0; }
  bool anything_done() const { return !done_.empty(); }
  bool prints() const { return printing_ > 0; }
  // Kernels or library calls are among it.
  bool computing() const;
  TimePoint last_activity() const { return last_activity_; }
  void touch(TimePoint at) { last_activity_ = at; }
  // Fences that somebody may be waiting for, and that the device does not report, or not with all that may be asked.
  // From any thread.
  uint32_t urgent() const { return urgent_.load(std::memory_order_relaxed); }

 private:
  bool can_report(const Stream& stream) const;
  CUresult report(const Stream& stream);
  void pass(Stream& stream, const Look& passed);
  void complete(Stream& stream, const Operation& operation, TimePoint started, TimePoint ended, uint32_t cuda_error,
                std::string text);
  void fault(CUresult result, std::string text);
  void fault(uint32_t cuda_error, std::string text);
  void fail(Stream& stream, std::string& text);
  std::string suspects() const;

  const Driver& driver_;
  StreamTable streams_;
  StagingPool staging_;
  PrintCapture capture_;
  EventClock clock_;
  std::deque<device::Completion> done_;
  device::ProgressWords words_;
  bool reports_ = false;
  uint64_t last_sequence_ = 0;
  uint64_t in_flight_ = 0;    // operations that the driver has
  uint64_t printing_ = 0;     // of these, kernels that may print
  uint32_t fault_ = 0;        // CUDA's code
  bool device_lost_ = false;  // with it
  TimePoint last_activity_{};
  std::atomic<uint32_t> urgent_{0};
};

}  // namespace heddle::cuda
