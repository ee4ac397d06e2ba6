#include "worker/long_work.h"

#include "core/lock_soon.h"

namespace heddle::worker {

bool LongWork::is_long(const protocol::Record& record) {
  const WorkKind kind = work_of(record);
  sequence_ = record.header.sequence;
  timed_ = {};
  long_ = false;
  known_.reset();
  if (short_work_.take(kind)) return false;
  {
    const auto lock = locked_soon(mutex_);
    known_ = times_.estimate(kind);
  }
  timed_ = kind;
  short_work_.counted(kind, known_);
  return long_ = !known_ || *known_ >= from_;
}

void LongWork::took(std::span<const Took> batch) {
  if (batch.empty()) return;
  const auto lock = locked_soon(mutex_);
  for (const Took& each : batch) times_.add(each.kind, each.time);
}

}  // namespace heddle::worker
