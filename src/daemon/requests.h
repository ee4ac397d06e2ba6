#pragma once

#include "daemon/copies.h"
#include "daemon/sessions.h"

namespace heddle::daemon {

// What a connected session asks for. An error means that the client broke the protocol: its connection is to be closed
// and its session failed. Everything else is answered, or shows in the ring.
class Requests {
 public:
  Requests(Shared& shared, Tasks& tasks, Executor& executor, SegmentStore& segments, Copies& copies)
      : shared_(shared), tasks_(tasks), executor_(executor), segments_(segments), copies_(copies) {}

  Status handle(Session& session, protocol::Packet packet);
  // A segment of the session went: a declaration that waited for its addresses may go on.
  void retry_deferred(SessionId id);

 private:
  Status open_device(Session& session, const protocol::OpenDevice& open);
  Status make_ring(VirtualDevice& device);
  Status declare_module(Session& session, protocol::Packet packet);
  Status declare_segment(Session& session, const protocol::DeclareSegment& declared);
  Status known_segment(Session& session, const protocol::DeclareSegment& declared);
  Status host_segment(Session& session, const protocol::DeclareSegment& declared);
  Status release_host(Session& session, const protocol::DeclareSegment& declared);
  Status begin_task(Session& session, const protocol::BeginTask& begun);
  Status begin_apart(Session& session, const protocol::BeginApart& begun);
  Status memory_info(Session& session, const protocol::MemoryInfo& asked);

  Shared& shared_;
  Tasks& tasks_;
  Executor& executor_;
  SegmentStore& segments_;
  Copies& copies_;
};

}  // namespace heddle::daemon
