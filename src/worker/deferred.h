#pragma once

#include <cstdint>
#include <deque>

namespace heddle::worker {

// What the issuer does once everything up to a sequence is done on all streams.
struct Deferred {
  enum class Kind {
    kFree,
    kReleaseHost,
    kTaskEnd,
    kReclaim,    // a segment that the program has freed and not used since
    kReclaimed,  // those of heddled's request are done: it is told so
  };
  Kind kind;
  uint64_t after;     // the watermark that it waits for
  uint64_t sequence;  // of its own record; 0 where it has none
  uint64_t segment;
};

// In the order in which they were met, so that `after` never decreases. Issuer's thread only.
using DeferredQueue = std::deque<Deferred>;

}  // namespace heddle::worker
