#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/memory_copier.h"
#include "daemon/segment_store.h"

namespace heddle::daemon {

// Swap space: memory of this machine where the segments of suspended tasks lie while others have their devices.
//
// A segment's bytes are copied there while nobody has them mapped, by the GPU's keeper from device memory to memory
// that the GPU reaches (HARDWARE.md: 54 GB/s), or on software devices by a thread of heddled. What counts is the source
// until all of the task's segments are copied; then the notes of all of them and of the task change in one group of
// deposits, and the source goes back. So a heddled that dies in between leaves the copy to be begun anew. The same on
// the way back. What is being copied counts against the limit ([swap] host) from the beginning.
class Swaps {
 public:
  Swaps(Shared& shared, Keepers& keepers, Copies& copies, SwapSpace& space, SegmentStore& segments)
      : shared_(shared),
        keepers_(keepers),
        copies_(copies),
        space_(space),
        segments_(segments),
        copier_(shared.loop, shared.events) {}

  // Whether there is space for the memory of the virtual device's task. kLimitExceeded.
  Status has_space_for(Session& session, const VirtualDevice& device) const;
  // Copies the task's memory to swap space, or to its device: MemoryMoved follows, unless it is stopped or the segments
  // go.
  void out(Session& session, VirtualDevice& device);
  void in(Session& session, VirtualDevice& device);
  // Copies what is to be promoted to its device: likewise.
  void promote(Session& session, VirtualDevice& device);
  // The copies are not wanted any more. What counted before does.
  void stop(Session& session, VirtualDevice& device);
  // MemoryMoved has come: what was copied counts from now on, and the source goes back.
  void left(Session& session, VirtualDevice& device);
  void returned(Session& session, VirtualDevice& device);

  // Memory on the device has come from a keeper for a segment that returns, or is promoted; or there is none.
  void memory_came(Session& session, Segment& segment);
  void no_memory_came(const Session& session, const Segment& segment, const Error& why);
  // What a keeper says of swap space that it was asked for.
  void space_made(MemoryAnswered answered);
  // Whether the copy was one of these.
  bool over(uint64_t copy, const Status& status);

 private:
  struct UnderWay {
    SessionId session;
    uint64_t segment = 0;
  };

  static void begin(VirtualDevice& device);
  std::vector<Segment*> to_leave(Session& session, const VirtualDevice& device) const;
  static std::vector<Segment*> leaving(Session& session, const VirtualDevice& device);
  void make_space(Session& session, Segment& segment);
  void copy(Session& session, Segment& segment);
  void stop_copy(const Session& session, Segment& segment);
  void failed(const VirtualDevice& device, const Error& why);
  void look(Session& session, VirtualDevice& device);

  Shared& shared_;
  Keepers& keepers_;
  Copies& copies_;
  SwapSpace& space_;
  SegmentStore& segments_;
  MemoryCopier copier_;
  std::map<uint64_t, UnderWay> under_way_;  // by copy
};

}  // namespace heddle::daemon
