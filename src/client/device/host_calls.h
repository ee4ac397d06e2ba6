#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "client/device/ring_port.h"

// Calls that a stream makes into the program (cudaLaunchHostFunc, cudaStreamAddCallback), and waits for another
// device's event, which are calls too.
//
// One thread for each virtual device, made at the first such call. A stream that reaches a kHostCall record stands
// still (StreamSlot::host_reached); the thread runs the call, without any lock, and lets the stream go on (host_done).
// Calls of one stream run in its order. The thread is never joined: a program may leave, or call exit(), in the
// middle of a call.
namespace heddle::client {

struct HostCall {
  uint64_t sequence = 0;                  // of its record
  std::function<void(cudaError_t)> run;   // with what the device has to say of its health
  std::function<bool()> ready = nullptr;  // not before this is true; asked every kAskEvery
};

class HostCalls {
 public:
  explicit HostCalls(RingPort& ring) : ring_(ring) {}

  // Queues the call of a record that was just published on `stream`; under the device's lock, so that order is kept.
  void add(uint32_t stream, HostCall call);
  // The thread's number, as gettid() says it; 0: there is none yet.
  int thread() const { return thread_.load(std::memory_order_acquire); }

 private:
  void serve();
  bool run_one();
  void release(uint32_t stream, uint64_t sequence);

  RingPort& ring_;
  std::atomic<int> thread_{0};
  std::mutex mutex_;  // guards what follows
  std::condition_variable added_;
  bool started_ = false;
  std::map<uint32_t, std::deque<HostCall>> queues_;  // by stream; no empty ones
};

}  // namespace heddle::client
