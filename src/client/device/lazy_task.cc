#include "client/device/lazy_task.h"

#include <algorithm>

namespace heddle::client {

using protocol::RecordType;

Status LazyTask::created(Segment* segment, bool grant_now) {
  if (!grant_now) {
    waiting_.push_back(segment);
    return {};
  }
  HEDDLE_TRY(previous_over());
  auto number = voice_.declare(*segment, true);
  if (!number) return tl::unexpected(std::move(number).error());
  segment->number = *number;
  if (begun_) HEDDLE_TRY(voice_.append(RecordType::kNeed, segment->number));
  return {};
}

Status LazyTask::emptied(Segment* segment, bool touched, bool grant_now) {
  if (segment->number != 0 && (begun_ || grant_now)) {
    HEDDLE_TRY(begin());  // where the policy grants at cudaMalloc: a free is a record, and records need a worker
    auto sequence = voice_.append(RecordType::kFree, segment->number);
    if (!sequence) return tl::unexpected(std::move(sequence).error());
    voice_.retire(segment, *sequence);
    return {};
  }
  std::erase(waiting_, segment);
  // While a task runs every record declares first what waits: nothing has touched this one.
  if ((touched && !begun_) || segment->number != 0) {
    ghosts_.push_back(segment);
  } else {
    voice_.retire(segment, 0);
  }
  return {};
}

Status LazyTask::all_freed() {
  if (!begun_) return {};
  HEDDLE_TRY(voice_.append(RecordType::kTaskEnd, serial_));
  begun_ = false;
  ending_ = true;
  forget_need();
  return {};
}

void LazyTask::was_ended(const std::vector<Segment*>& live, const std::vector<Segment*>& ghosts) {
  resting_ = begun_ = false;
  ending_ = true;
  forget_need();
  waiting_.insert(waiting_.end(), live.begin(), live.end());
  ghosts_.insert(ghosts_.end(), ghosts.begin(), ghosts.end());
}

void LazyTask::forget_need() {
  warps_ = 0;
  need_ = {need_.virtual_device};
}

Status LazyTask::begin() {
  if (begun_) return {};
  auto offered = offer();
  if (!offered) return tl::unexpected(std::move(offered).error());
  HEDDLE_TRY(voice_.begin(offered->serial, offered->need));
  return accepted();
}

Result<protocol::BeginTask> LazyTask::offer() {
  HEDDLE_TRY(previous_over());
  for (auto* list : {&waiting_, &ghosts_}) {
    for (Segment* segment : *list) {
      if (segment->number != 0) continue;
      auto number = voice_.declare(*segment, false);
      if (!number) return tl::unexpected(std::move(number).error());
      segment->number = *number;
    }
  }
  return protocol::BeginTask{serial_ + 1, need_};
}

void LazyTask::declined() {
  for (auto* list : {&waiting_, &ghosts_}) {
    for (Segment* segment : *list) {
      if (segment->number != 0) voice_.withdrawn(*segment);
      segment->number = 0;
    }
  }
}

Status LazyTask::accepted() {
  ++serial_;
  begun_ = true;
  waiting_.clear();
  // What touched them is in the ring already.
  for (Segment* segment : ghosts_) {
    auto sequence = voice_.append(RecordType::kFree, segment->number);
    if (!sequence) return tl::unexpected(std::move(sequence).error());
    voice_.retire(segment, *sequence);
  }
  ghosts_.clear();
  return {};
}

Status LazyTask::previous_over() {
  if (!ending_) return {};
  HEDDLE_TRY(voice_.await_end());
  ending_ = false;
  return {};
}

Status LazyTask::declare_waiting() {
  for (Segment* segment : waiting_) {
    auto number = voice_.declare(*segment, false);
    if (!number) return tl::unexpected(std::move(number).error());
    segment->number = *number;
    HEDDLE_TRY(voice_.append(RecordType::kNeed, segment->number));
  }
  waiting_.clear();
  return {};
}

Status LazyTask::launch(uint64_t blocks, uint32_t threads, uint32_t registers, uint32_t shared_bytes) {
  const uint64_t warps = blocks * ((threads + 31) / 32);
  if (warps <= warps_) [[likely]]
    return {};
  warps_ = warps;
  need_.blocks = blocks;
  need_.threads_per_block = threads;
  need_.registers_per_thread = registers;
  need_.shared_bytes_per_block = shared_bytes;
  return begun_ ? voice_.grow(need_) : Status{};
}

}  // namespace heddle::client
