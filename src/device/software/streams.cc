#include "device/software/streams.h"

#include <algorithm>

namespace heddle::software {

StreamTable::StreamTable() {
  streams_.push_back(std::make_unique<Stream>());
  legacy_ = streams_.back().get();
  by_index_[0] = legacy_;
}

Status StreamTable::create(device::StreamIndex index, bool non_blocking, int priority) {
  if (by_index_.count(index)) return fail(ErrorCode::kInvalidArgument, "stream %u exists already", index);
  auto stream = std::make_unique<Stream>();
  stream->index = index;
  stream->non_blocking = non_blocking;
  stream->priority = priority;
  by_index_[index] = stream.get();
  streams_.push_back(std::move(stream));
  return {};
}

Status StreamTable::destroy(device::StreamIndex index) {
  if (index == 0) return fail(ErrorCode::kInvalidArgument, "stream 0 cannot be destroyed");
  auto found = find(index);
  if (!found) return tl::unexpected(found.error());
  (*found)->destroyed = true;
  by_index_.erase(index);
  if ((*found)->queue.empty()) check_later(**found);
  return {};
}

Result<Stream*> StreamTable::find(device::StreamIndex index) {
  auto found = by_index_.find(index);
  if (found == by_index_.end()) return fail(ErrorCode::kNotFound, "there is no stream %u", index);
  return found->second;
}

void StreamTable::append(Stream& stream, std::unique_ptr<Operation> operation) {
  operation->stream = &stream;
  operation->sequence = next_sequence_++;
  pending_.insert(operation->tag);
  stream.queue.push_back(std::move(operation));
  if (stream.queue.size() == 1) check_later(stream);
}

void StreamTable::check_later(Stream& stream) {
  if (std::find(to_check_.begin(), to_check_.end(), &stream) == to_check_.end()) to_check_.push_back(&stream);
}

std::vector<Operation*> StreamTable::take_ready() {
  std::vector<Operation*> ready;
  std::vector<Stream*> streams = std::exchange(to_check_, {});
  for (Stream* stream : streams) {
    if (stream->queue.empty()) {
      if (stream->destroyed) std::erase_if(streams_, [&](const auto& owned) { return owned.get() == stream; });
      continue;
    }
    Operation& front = *stream->queue.front();
    if (front.started) continue;
    if (auto* wait = std::get_if<WaitWork>(&front.work); wait && pending_.count(wait->awaited)) {
      waiting_for_[wait->awaited].push_back(stream);
      continue;
    }
    if (!may_start(front)) continue;
    front.started = true;
    front.ready = ready_time(front);
    ready.push_back(&front);
  }
  return ready;
}

bool StreamTable::may_start(const Operation& front) const {
  const Stream& stream = *front.stream;
  if (stream.non_blocking) return true;
  auto earlier = [&](const Stream& other) {
    return !other.queue.empty() && other.queue.front()->sequence < front.sequence;
  };
  if (!is_legacy(stream)) return !earlier(*legacy_);
  return std::none_of(streams_.begin(), streams_.end(),
                      [&](const auto& other) { return !other->non_blocking && earlier(*other); });
}

TimePoint StreamTable::ready_time(const Operation& front) const {
  const Stream& stream = *front.stream;
  TimePoint ready = std::max({front.enqueued, front.ready, stream.last_end});
  if (stream.non_blocking) return ready;
  if (!is_legacy(stream)) return std::max(ready, legacy_->last_end);
  for (const auto& other : streams_) {
    if (!other->non_blocking) ready = std::max(ready, other->last_end);
  }
  return ready;
}

void StreamTable::completed(const Operation& operation) {
  pending_.erase(operation.tag);
  auto waiting = waiting_for_.find(operation.tag);
  if (waiting == waiting_for_.end()) return;
  for (Stream* stream : waiting->second) {
    Operation& front = *stream->queue.front();
    front.ready = std::max(front.ready, operation.ended);
    check_later(*stream);
  }
  waiting_for_.erase(waiting);
}

void StreamTable::retire(Operation& operation) {
  Stream& stream = *operation.stream;
  stream.last_end = std::max(stream.last_end, operation.ended);
  stream.queue.pop_front();
  check_later(stream);
  if (stream.non_blocking) return;
  if (!is_legacy(stream)) return check_later(*legacy_);
  for (const auto& other : streams_) {
    if (!other->non_blocking) check_later(*other);
  }
}

}  // namespace heddle::software
