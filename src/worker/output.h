#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/fd.h"
#include "worker/printer.h"

namespace heddle::worker {

// The process's standard output and error as a pipe. NVIDIA's driver and libraries write there what concerns a program
// alone, failed assertions of its kernels above all: that is the program's to read, and in no log of ours.
class Output {
 public:
  // Descriptors 1 and 2 become the pipe; the log goes on where standard error was. Before there are threads.
  static Result<std::unique_ptr<Output>> capture();
  ~Output();

  const Fd& pipe() const { return pipe_; }

 private:
  Output(Fd pipe, Fd output, Fd error) : pipe_(std::move(pipe)), output_(std::move(output)), error_(std::move(error)) {}

  Fd pipe_;            // the end to read
  Fd output_, error_;  // what the two were
};

// Carries what comes through the pipe to the program, by a thread of its own, and at once where the printer is told to
// collect: then everything that was written before is in the ring. Before there is a program, to the log.
//
// Bounded: what the program has not taken waits here up to kMostWaiting bytes; more is dropped.
class OutputDrain {
 public:
  OutputDrain(const Fd& pipe, Printer& printer);
  ~OutputDrain();
  OutputDrain(const OutputDrain&) = delete;
  OutputDrain& operator=(const OutputDrain&) = delete;

 private:
  static constexpr size_t kMostWaiting = 1 << 20;

  void run();
  // Under the lock. Whether there was anything.
  bool read();
  bool pass_on();
  void collect();

  const Fd& pipe_;
  Printer& printer_;
  Fd wake_;
  std::mutex mutex_;
  std::string waiting_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace heddle::worker
