#pragma once

#include <functional>
#include <mutex>
#include <string_view>

#include "protocol/ring_memory.h"
#include "worker/commit.h"

namespace heddle::worker {

// Carries device printf into the ring's print area, as much of it as the program's limit says, and into the report area
// what the checks of kernels find and what libraries in this process write (output.h). Never waits: what finds no space
// is dropped whole and counted; only libraries' text is taken in part.
// Thread-safe; used by the device's own threads.
class Printer {
 public:
  // While no ring is attached nothing prints. `ring` and `commit` must outlive their attachment.
  void attach(protocol::RingMemory& ring, Commit& commit);
  void detach();
  void print(std::string_view text);
  // One line, without its end.
  void report_finding(std::string_view text);

  // For the program's standard error: how many bytes found space.
  size_t pass_on(std::string_view text);
  bool has_program();
  // Who has such text, and passes on what there is when told to.
  void set_source(std::function<void()> source);
  // All that was written by now is passed on, as far as there is space.
  void collect();

 private:
  std::mutex mutex_;
  std::mutex source_mutex_;  // taken before the other
  std::function<void()> source_;
  protocol::RingMemory* ring_ = nullptr;
  Commit* commit_ = nullptr;  // with the ring
  // The ring's copies are for the client; a tenant may have written to them.
  uint64_t tail_ = 0, lost_ = 0, report_tail_ = 0, findings_ = 0;
};

}  // namespace heddle::worker
