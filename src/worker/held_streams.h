#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace heddle::worker {

// A host call that has not returned: the latest of its stream that something waits for. Those of one stream return in
// order.
struct HeldBy {
  uint32_t stream;
  uint64_t call;
  bool operator==(const HeldBy&) const = default;
};

// Which streams' next records stand behind host calls that have not returned, by the order that the device keeps: a
// stream's own; that of an event for who waits for it; that of stream 0, the legacy default stream, with all blocking
// streams, and of these with it. Where it is not sure, a stream counts as held. Issuer's thread only.
class HeldStreams {
 public:
  // A host call is handed over, behind what its stream followed before.
  void hold(uint32_t stream, bool blocking, uint64_t call);
  // It has returned.
  void release(const HeldBy& returned);

  // Before a record of the stream is handed over.
  void follow(uint32_t stream, bool blocking);
  // The stream goes on behind an event that stands behind these.
  void wait(uint32_t stream, bool blocking, const std::vector<HeldBy>& awaited) { join(stream, blocking, awaited); }

  // What the stream's next record stands behind.
  std::vector<HeldBy> of(uint32_t stream) const;
  bool holds(uint32_t stream) const { return streams_.contains(stream); }
  void clear() { streams_.clear(); }

  // Takes what has returned out of `held`.
  static void release(std::vector<HeldBy>& held, const HeldBy& returned);

 private:
  struct Stream {
    bool blocking = true;
    std::vector<HeldBy> held;  // not empty; one for each stream with host calls
  };
  void join(uint32_t stream, bool blocking, const std::vector<HeldBy>& more);

  std::map<uint32_t, Stream> streams_;  // those that are held
};

}  // namespace heddle::worker
