#pragma once

#include "client/stream_ref.h"

namespace heddle::client {

// An event as its handle names it, with the state that it had then.
struct EventRef {
  VirtualDevice* device;
  uint32_t slot;
  EventState state;
};
Answer<EventRef> resolve_event(cudaEvent_t event);

// Records in the ring, whatever is being captured.
Done record_event(const EventRef& event, const StreamRef& stream);
Done wait_for_event(const StreamRef& stream, const EventRef& event);

}  // namespace heddle::client
