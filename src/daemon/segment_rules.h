#pragma once

#include "daemon/config.h"
#include "daemon/executor.h"

namespace heddle::daemon {

enum class SegmentVerdict {
  kNew,
  kKnown,  // said before: nothing is to be done again
  // Its addresses, or the last place among the segments that a session may have, belong to one that a worker may be
  // giving back just now: its program knows of that first.
  kAwaitsFree,
};

// What may be declared: inside the session's window, whole 2 MiB pieces, no two at one address, numbers that increase,
// and no more than the limits allow. `executor` says whom it serves. kLimitExceeded: refused, the session could go on;
// kProtocol: the client is wrong.
Result<SegmentVerdict> check_segment(const Session& session, const protocol::DeclareSegment& declared,
                                     const Limits& limits, const Executor& executor);

// The device segments that a copy between devices goes from and to. kProtocol where an end does not lie inside one of
// the session's, or where its rows overlap: then it would be more work than there are bytes.
struct CopyEnds {
  Segment* to;
  Segment* from;
};
Result<CopyEnds> check_copy(Session& session, const protocol::CopyAcross& copy);

}  // namespace heddle::daemon
