#pragma once

// Which streams of the open epoch can be committed without the others (epoch.h): those of one component together.
//
// Streams are of one component where what one of them does may matter to another that is run again: where they meet in
// bytes that one of them may write, where one waits for another's work (events, the legacy default stream), and where
// they record the same event. Where a record's effects are not known, or it writes variables of modules, which are
// saved all at once, all streams are of one component until the epoch ends; so they are where there are too many of
// them.
//
// A component that is committed dissolves: what its streams do from then on is as new, and they may meet others.
//
// Not thread-safe: the issuer's.

#include <map>
#include <unordered_map>
#include <vector>

#include "protocol/stream_cuts.h"
#include "worker/epoch_memory.h"

namespace heddle::worker {

class Components {
 public:
  using Streams = std::vector<uint32_t>;

  // A new epoch: nothing was taken.
  void clear();
  // Until then all streams are of one component.
  void join_all() { together_ = true; }

  // A record of the stream was taken; `blocking`: the stream waits for the legacy default stream's work.
  void taken(uint32_t stream, bool blocking, TimePoint now);
  // It waits for work of the other one's.
  void waits(uint32_t stream, uint32_t other);
  void records(uint32_t stream, uint32_t event);
  // What it may read and write, with what is saved before it.
  void touches(uint32_t stream, const RecordEffects& effects, const std::vector<Save>& saves, TimePoint now);

  // Whether there is more than one.
  bool several() const;
  std::vector<Streams> all() const;
  // The one of that stream; none where nothing of the stream was taken, or all streams are of one.
  std::vector<Streams> of(uint32_t stream) const;
  // Since when its component has something that is not committed; `now`, if it has nothing. Where all streams are of
  // one, that is since the epoch `began`.
  TimePoint since(uint32_t stream, TimePoint began, TimePoint now) const;

  // These, of whole components, are committed. Returns what bytes they had touched.
  std::vector<CommittedBytes> committed(const Streams& streams);

 private:
  struct Bytes {
    ByteRanges touched, written;
  };
  struct Stream {
    uint32_t stream = 0, component = 0;
    bool blocking = false;
    TimePoint since{};
    std::map<uint64_t, Bytes> segments;
  };

  const Stream* find(uint32_t stream) const;
  Stream* add(uint32_t stream, TimePoint now);
  void join(const Stream& one, const Stream& other);
  void meet(const Stream& stream, uint64_t segment, ByteRanges::Range bytes, bool written);
  void touch(Stream& stream, uint64_t segment, ByteRanges::Range bytes, bool written);
  ByteRanges touched_by_all(uint64_t segment) const;

  bool together_ = false;
  uint32_t components_ = 0;                             // that there ever were in this epoch
  std::vector<Stream> streams_;                         // of which something was taken and is not committed
  std::unordered_map<uint32_t, uint32_t> recorded_by_;  // the stream that has recorded the event last
};

}  // namespace heddle::worker
