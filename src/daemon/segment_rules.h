#pragma once

#include "daemon/config.h"
#include "daemon/registry.h"

namespace heddle::daemon {

enum class SegmentVerdict {
  kNew,
  kKnown,     // said before: nothing is to be done again
  kOverlaps,  // its addresses belong to a segment that the worker may be giving back just now
};

// What may be declared: inside the session's window, whole 2 MiB pieces, no two at one address, numbers that increase,
// and no more than the limits allow. kLimitExceeded: refused, the session could go on; kProtocol: the client is wrong.
Result<SegmentVerdict> check_segment(const Session& session, const protocol::DeclareSegment& declared,
                                     const Limits& limits);

}  // namespace heddle::daemon
