#pragma once

#include <map>

#include "daemon/keepers.h"
#include "daemon/shared.h"

namespace heddle::daemon {

// Copies between the devices of a session (protocol::CopyAcross): checks them, has the keeper of the destination's GPU
// do them, and answers. What cannot be done here the program does itself, through its own memory.
class Copies {
 public:
  Copies(Shared& shared, Keepers& keepers) : shared_(shared), keepers_(keepers) {}

  // CopyAnswered follows for each copy that a keeper was given. An error means that the client is wrong.
  Status copy(Session& session, const protocol::CopyAcross& wanted);
  // Ends all copies from and to the segment, whose memory is released next (SegmentStore), or which is removed.
  void end_all(Session& session, const Segment& segment);
  // A keeper has done the copy, or will not (CopyAnswered).
  void over(uint64_t copy, const Status& status);

 private:
  struct UnderWay {
    SessionId session;
    uint64_t request = 0;       // of the program
    uint64_t to = 0, from = 0;  // numbers of the segments
    DeviceId device;            // whose keeper does it
    Bytes bytes;
  };

  bool on_gpu(const Session& session, const Segment& segment) const;
  static void answer(const Session& session, uint64_t request, const Status& status);

  Shared& shared_;
  Keepers& keepers_;
  std::map<uint64_t, UnderWay> under_way_;
};

}  // namespace heddle::daemon
