#include "device/cuda/streams.h"

#include <algorithm>

namespace heddle::cuda {

StreamTable::StreamTable() {
  create(0, false, nullptr);
}

Status StreamTable::check_new(device::StreamIndex index) const {
  if (!by_index_.contains(index)) return {};
  return fail(ErrorCode::kInvalidArgument, "stream %u exists already", index);
}

void StreamTable::create(device::StreamIndex index, bool non_blocking, CUstream handle) {
  auto stream = std::make_unique<Stream>();
  stream->index = index;
  stream->non_blocking = non_blocking;
  stream->handle = handle;
  by_index_[index] = stream.get();
  all_.push_back(std::move(stream));
}

Status StreamTable::destroy(device::StreamIndex index) {
  const auto found = by_index_.find(index);
  if (index == 0 || found == by_index_.end())
    return fail(ErrorCode::kNotFound, "stream %u cannot be destroyed: %s", index,
                index == 0 ? "it is the default stream" : "there is none");
  found->second->destroyed = true;
  by_index_.erase(found);
  return {};
}

Result<Stream*> StreamTable::find(device::StreamIndex index) {
  const auto found = by_index_.find(index);
  if (found == by_index_.end()) return fail(ErrorCode::kNotFound, "there is no stream %u", index);
  return found->second;
}

std::vector<CUstream> StreamTable::sweep() {
  std::vector<CUstream> handles;
  std::erase_if(all_, [&](const std::unique_ptr<Stream>& stream) {
    if (!stream->destroyed || !stream->idle() || stream->held) return false;
    handles.push_back(stream->handle);
    return true;
  });
  return handles;
}

bool StreamTable::behind_hold(const Stream& stream, uint64_t sequence) const {
  if (stream.held && stream.hold_sequence < sequence) return true;
  return !stream.deferred.empty() && stream.deferred.front().operation.sequence < sequence;
}

bool StreamTable::is_deferred(device::Tag tag) const {
  return std::any_of(all_.begin(), all_.end(), [tag](const auto& stream) {
    return std::any_of(stream->deferred.begin(), stream->deferred.end(),
                       [tag](const Deferred& each) { return each.operation.tag == tag; });
  });
}

bool StreamTable::blocked(const Stream& stream, uint64_t sequence, const Work& work) const {
  if (waiting_ == 0) return false;
  if (behind_hold(stream, sequence)) return true;
  if (const auto* wait = std::get_if<WaitWork>(&work); wait && (is_deferred(wait->awaited) || held_at(wait->awaited)))
    return true;
  if (stream.non_blocking) return false;
  if (!stream.legacy()) return behind_hold(*all_.front(), sequence);
  return std::any_of(all_.begin(), all_.end(),
                     [&](const auto& other) { return !other->non_blocking && behind_hold(*other, sequence); });
}

bool StreamTable::has_turn(const Stream& stream) const {
  if (!stream.idle()) return false;
  if (stream.non_blocking) return true;
  if (!stream.legacy()) return all_.front()->idle();
  return std::all_of(all_.begin(), all_.end(), [](const auto& other) { return other->non_blocking || other->idle(); });
}

std::pair<Stream*, const Operation*> StreamTable::issued(device::Tag tag) const {
  for (const auto& stream : all_) {
    // Waits are for what was handed over lately.
    const auto found = std::find_if(stream->pending.rbegin(), stream->pending.rend(),
                                    [tag](const Operation& each) { return each.tag == tag; });
    if (found != stream->pending.rend()) return {stream.get(), &*found};
  }
  return {};
}

Stream* StreamTable::held_at(device::Tag tag) const {
  for (const auto& stream : all_) {
    if (stream->held && stream->hold == tag) return stream.get();
  }
  return nullptr;
}

void StreamTable::hold(Stream& stream, const Operation& operation) {
  stream.held = true;
  stream.hold = operation.tag;
  stream.hold_sequence = operation.sequence;
  ++waiting_;
}

void StreamTable::let_go(Stream& stream) {
  if (std::exchange(stream.held, false)) --waiting_;
}

void StreamTable::defer(Stream& stream, Deferred deferred) {
  stream.deferred.push_back(std::move(deferred));
  ++waiting_;
}

bool StreamTable::take_unblocked(Stream*& stream, Deferred& deferred) {
  for (const auto& each : all_) {
    if (each->deferred.empty()) continue;
    Deferred& front = each->deferred.front();
    if (blocked(*each, front.operation.sequence, front.work)) continue;
    stream = each.get();
    deferred = std::move(front);
    each->deferred.pop_front();
    --waiting_;
    return true;
  }
  return false;
}

}  // namespace heddle::cuda
