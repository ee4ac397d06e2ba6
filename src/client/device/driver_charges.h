#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/device_model.h"

// What a GPU's driver takes of the device's memory on a program's account, beside what the program asks for: it has to
// be charged before the call that makes the driver take it, or the driver finds the memory given to others, and the
// call fails. What it comes to was measured on an H100 (tests/gpu/driver_memory.cu,
// docs/results/2026-11-23-driver-memory.md):
//
//   local memory   of as many threads as the device holds, as much as the kernel that needs most; 1 KiB of it each
//                  comes with the context, which heddled charges
//   heap           cudaLimitMallocHeapSize and a little, from the first kernel on whose module allocates
//   variables      of each module that is used
//   streams        about 0.55 MiB each
//   libraries      what cuBLAS loads, beside the workspace, which is the program's
//
// It is an estimate: what is not known (the local memory of functions that machine code is linked with at run time,
// code itself) shows in what the device has left (daemon/outside_memory.h), as does a sum that is too small to count.
namespace heddle::client {

class DriverCharges {
 public:
  enum class Part : uint32_t { kLocal, kHeap, kVariables, kStreams, kLibrary };

  // A software device takes nothing.
  explicit DriverCharges(const DeviceModel& model);

  // What a module's variables may come to without being charged.
  static constexpr uint64_t kNegligible = 1ull << 20;
  static constexpr uint32_t kContextLocalBytes = 1024;  // a thread's, which come with a context
  static constexpr uint64_t kHeapOverhead = 2ull << 20;
  static constexpr uint64_t kStreamBytes = 560ull << 10;
  static constexpr uint64_t kCublasBytes = 34ull << 20;

  bool on_gpu() const { return threads_ != 0; }
  // Whether the local memory of a kernel, bytes a thread, is charged already, and all else that there is to charge. Any
  // thread, without the lock.
  bool covers_local(uint32_t bytes) const { return bytes < beyond_local_.load(std::memory_order_relaxed); }
  uint64_t local_bytes(uint32_t bytes_a_thread) const;

  // --- under the device's lock ---
  // How many bytes more than so far have to be charged, in whole segments, where `part` (of module or library `id`)
  // comes to `bytes` and the others to what they came to; mostly 0.
  uint64_t missing(Part part, uint32_t id, uint64_t bytes) const;
  // The part is covered; `segment` (an address; 0: none) is where `charged` bytes more are counted.
  void cover(Part part, uint32_t id, uint64_t bytes, uint64_t segment, uint64_t charged);
  // How many segments count it.
  uint64_t segments() const { return segments_.size(); }
  // Nothing is charged any more, because the next worker may be another one; returns the segments. What the program has
  // needed so far (a stack, streams, its kernels' local memory) its next launch is charged for again.
  std::vector<uint64_t> lapse();
  // As cudaDeviceReset has it.
  void forget();

 private:
  using Key = std::pair<Part, uint32_t>;

  uint64_t sum(Key key, uint64_t bytes) const;
  void set_covered(bool all);

  const uint64_t threads_;              // that the device holds at once; 0: nothing is charged
  std::atomic<uint32_t> beyond_local_;  // bytes a thread: fewer are covered; 0: there is something to charge
  std::map<Key, uint64_t> needs_;
  std::vector<uint64_t> segments_;
  uint64_t charged_ = 0;
};

}  // namespace heddle::client
