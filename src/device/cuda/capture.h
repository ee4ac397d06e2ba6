#pragma once

#include "core/fd.h"
#include "device/device.h"

namespace heddle::cuda {

// Takes what kernels print. The driver writes it to the process's standard output, at synchronising calls; so while
// kernels that may print are in flight, standard output is a memory file.
//
// Thread safety: the owner's lock.
class PrintCapture {
 public:
  explicit PrintCapture(device::PrintSink sink) : sink_(std::move(sink)) {}
  ~PrintCapture() { end(); }
  PrintCapture(const PrintCapture&) = delete;
  PrintCapture& operator=(const PrintCapture&) = delete;

  // One more such kernel. The first redirects; without a sink nothing happens.
  void launched();
  // `count` of them are done, and the driver has written what they printed. The last puts standard output back.
  void finished(uint64_t count);
  // What was printed by now goes to the sink.
  void collect();

 private:
  void begin();
  void end();

  device::PrintSink sink_;
  Fd file_, original_;
  uint64_t in_flight_ = 0;
};

}  // namespace heddle::cuda
