#include "worker/streams.h"

namespace heddle::worker {

Status Streams::prepare(uint32_t stream) {
  if (stream == 0) return {};  // the device has it from the start
  const protocol::StreamSlot& slot = ring_.streams()[stream];
  const Made wanted{true, (slot.flags.load(std::memory_order_relaxed) & protocol::kStreamNonBlocking) == 0,
                    slot.priority.load(std::memory_order_relaxed)};
  const Made& made = made_[stream];
  if (made.exists) {
    const bool same = made.blocking == wanted.blocking && made.priority == wanted.priority;
    if (same || !progress_.idle(stream)) return {};
  }
  return make(stream, wanted);
}

Status Streams::make(uint32_t stream, const Made& wanted) {
  if (made_[stream].exists) {
    HEDDLE_TRY(context_.destroy_stream(stream));
    std::erase(existing_, stream);
    made_[stream] = {};
  }
  sweep();
  HEDDLE_TRY(context_.create_stream(stream, !wanted.blocking, wanted.priority));
  made_[stream] = wanted;
  existing_.push_back(stream);
  return {};
}

// Only when one is made: what is left over in between is bounded and costs nothing.
void Streams::sweep() {
  std::erase_if(existing_, [this](uint32_t stream) {
    const bool live = ring_.streams()[stream].flags.load(std::memory_order_relaxed) & protocol::kStreamLive;
    if (live || !progress_.idle(stream) || !context_.destroy_stream(stream)) return false;
    made_[stream] = {};
    return true;
  });
}

bool Streams::has_turn(uint32_t stream, uint64_t sequence) const {
  if (stream == 0) return progress_.completed() + 1 == sequence;
  return progress_.idle(stream) && (!made_[stream].blocking || progress_.idle(0));
}

}  // namespace heddle::worker
