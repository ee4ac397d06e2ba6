#pragma once

#include "client/device/handle_table.h"
#include "client/device/ring_port.h"

// The streams and events of one ring, by slot. Any thread: the functions take the ring's lock, but for those that are
// said to stand under it.
namespace heddle::client {

struct StreamState {
  uint64_t last = 0;  // sequence of its last record
  bool non_blocking = false;
  int priority = 0;
  uint64_t joined = 0;  // how far it waits for the side devices already: the sum of their last records' sequences
};

class Streams {
 public:
  // Slot 0 is the legacy default stream: always there, no handle of its own.
  explicit Streams(RingPort& ring);

  Answer<uint32_t> open(bool non_blocking, int priority);
  // Work that was enqueued still runs; the slot is used again when it is done.
  void close(uint32_t slot);
  uint64_t handle(uint32_t slot);
  std::optional<uint32_t> find(const Handle& handle);
  StreamState state(uint32_t slot);
  void set_priority(uint32_t slot, int priority);

  // Under the lock.
  StreamState& at(uint32_t slot) { return table_.at(slot); }
  uint32_t size() const { return table_.size(); }
  // The default stream among them.
  uint32_t open_count() const { return table_.open_count(); }

 private:
  RingPort& ring_;
  HandleTable<StreamState> table_{kStreamTag, protocol::kMaxStreams};
};

struct EventState {
  uint64_t last = 0;  // sequence of the kEventRecord; 0: never recorded
  unsigned flags = 0;
  uint32_t stream = 0;  // that it was recorded on last
};

class Events {
 public:
  struct Found {
    uint32_t slot;
    EventState state;
  };

  explicit Events(RingPort& ring) : ring_(ring) {}

  // Returns the handle.
  Answer<uint64_t> open(unsigned flags);
  void close(uint32_t slot);
  std::optional<Found> find(const Handle& handle);

  // Under the lock: the event was recorded.
  void recorded(uint32_t slot, uint32_t stream, uint64_t sequence) {
    table_.at(slot).last = sequence;
    table_.at(slot).stream = stream;
  }

 private:
  RingPort& ring_;
  HandleTable<EventState> table_{kEventTag, protocol::kMaxEvents};
};

}  // namespace heddle::client
