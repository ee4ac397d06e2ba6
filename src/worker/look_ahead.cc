#include "worker/look_ahead.h"

#include "worker/kernel_times.h"

namespace heddle::worker {

// What makes no sense in the ring is found again when it is taken.
void LookAhead::read_on(const protocol::Record& waiting, const protocol::RingReader& reader) {
  if (record_.header.sequence < waiting.header.sequence) ahead_ = reader;
  for (auto got = ahead_->next(record_); got && *got; got = ahead_->next(record_)) {
    if (!needs_device(record_.header.type)) {
      plain_ = record_.header.sequence;
      continue;
    }
    if (record_.header.stream != latest_.stream) other_ = latest_;
    latest_ = {record_.header.sequence, record_.header.stream};
  }
}

bool LookAhead::others_follow(const protocol::Record& waiting, const protocol::RingReader& reader) {
  read_on(waiting, reader);
  const Seen& follows = latest_.stream != waiting.header.stream ? latest_ : other_;
  return follows.sequence > waiting.header.sequence;
}

bool LookAhead::anything_else_follows(const protocol::Record& waiting, const protocol::RingReader& reader) {
  return others_follow(waiting, reader) || plain_ > waiting.header.sequence;
}

}  // namespace heddle::worker
