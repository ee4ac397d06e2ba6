#pragma once

#include <mutex>
#include <string_view>

#include "protocol/ring_memory.h"

namespace heddle::worker {

// Carries device printf into the ring's print area, as much of it as the program's limit says, and what the checks of
// kernels find into the report area. Never waits: what finds no room is dropped whole and counted.
// Thread-safe; used by the device's own threads.
class Printer {
 public:
  // Until a ring is attached nothing prints. `ring` must outlive the printing.
  void attach(protocol::RingMemory& ring);
  void print(std::string_view text);
  // One line, without its end.
  void report_finding(std::string_view text);

 private:
  std::mutex mutex_;
  protocol::RingMemory* ring_ = nullptr;
  // The ring's copies are for the client; a tenant may have written to them.
  uint64_t tail_ = 0, lost_ = 0, report_tail_ = 0, findings_ = 0;
};

}  // namespace heddle::worker
