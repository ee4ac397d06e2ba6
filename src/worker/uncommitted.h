#pragma once

#include <vector>

#include "core/units.h"
#include "protocol/ring.h"

namespace heddle::worker {

// Words of the ring that tell of what is done and not committed yet: the latest of each stream and event. Not
// thread-safe.
class Uncommitted {
 public:
  struct Event {
    uint32_t event = 0;
    uint32_t stream = 0;  // of the record
    uint64_t sequence = 0;
    TimePoint when{};
  };

  void stream(uint32_t stream, uint64_t sequence);
  void event(const Event& reached);
  // Calls on_stream(stream, sequence) and on_event(event) for all of them, and forgets them.
  template <class OnStream, class OnEvent>
  void take(OnStream on_stream, OnEvent on_event);
  // Calls on_event(event) for those for which is_due(event), and forgets these.
  template <class IsDue, class OnEvent>
  void take_events(IsDue is_due, OnEvent on_event);

 private:
  std::vector<uint64_t> of_stream_;  // by stream; 0: nothing new
  std::vector<uint32_t> streams_;    // that have something
  std::vector<Event> events_;
  std::vector<uint32_t> place_;  // by event, one more than where it stands in events_; 0: nowhere
};

inline void Uncommitted::stream(uint32_t stream, uint64_t sequence) {
  if (of_stream_.empty()) of_stream_.resize(protocol::kMaxStreams);
  if (of_stream_[stream] == 0) streams_.push_back(stream);
  of_stream_[stream] = sequence;
}

inline void Uncommitted::event(const Event& reached) {
  if (place_.empty()) place_.resize(protocol::kMaxEvents);
  uint32_t& place = place_[reached.event];
  if (place == 0) {
    events_.emplace_back();
    place = static_cast<uint32_t>(events_.size());
  }
  events_[place - 1] = reached;
}

template <class OnStream, class OnEvent>
void Uncommitted::take(OnStream on_stream, OnEvent on_event) {
  for (const Event& each : events_) {
    on_event(each);
    place_[each.event] = 0;
  }
  events_.clear();
  for (const uint32_t stream : streams_) on_stream(stream, std::exchange(of_stream_[stream], 0));
  streams_.clear();
}

template <class IsDue, class OnEvent>
void Uncommitted::take_events(IsDue is_due, OnEvent on_event) {
  for (size_t i = 0; i < events_.size();) {
    const Event each = events_[i];
    if (!is_due(each)) {
      ++i;
      continue;
    }
    on_event(each);
    place_[events_.back().event] = static_cast<uint32_t>(i + 1);
    place_[each.event] = 0;
    events_[i] = events_.back();
    events_.pop_back();
  }
}

}  // namespace heddle::worker
