#include "worker/components.h"

#include <algorithm>

namespace heddle::worker {
namespace {

// Ranges of a segment that are told apart.
constexpr size_t kMostApart = 128;

// Too many become one, with what lies in between. Returns the one that the bytes are in then.
ByteRanges::Range add_to(ByteRanges& ranges, ByteRanges::Range bytes) {
  ranges.add(bytes);
  if (ranges.count() > kMostApart) ranges.add({ranges.begin()->begin, (ranges.end() - 1)->end});
  const auto found =
      std::find_if(ranges.begin(), ranges.end(), [&](const ByteRanges::Range& each) { return bytes.begin < each.end; });
  return found == ranges.end() ? bytes : *found;
}

}  // namespace

void Components::clear() {
  together_ = false;
  components_ = 0;
  streams_.clear();
  recorded_by_.clear();
}

const Components::Stream* Components::find(uint32_t stream) const {
  const auto found =
      std::find_if(streams_.begin(), streams_.end(), [&](const Stream& each) { return each.stream == stream; });
  return found == streams_.end() ? nullptr : &*found;
}

// If it is not there yet. Null where all are together.
Components::Stream* Components::add(uint32_t stream, TimePoint now) {
  if (together_) return nullptr;
  const Stream* const found = find(stream);
  if (found) return &streams_[static_cast<size_t>(found - streams_.data())];
  if (streams_.size() == protocol::StreamCuts::kMost) {
    join_all();
    return nullptr;
  }
  Stream& added = streams_.emplace_back();
  added.stream = stream;
  added.component = ++components_;
  added.since = now;
  return &added;
}

void Components::join(const Stream& one, const Stream& other) {
  const uint32_t from = other.component, to = one.component;
  if (from == to) return;
  for (Stream& each : streams_) {
    if (each.component == from) each.component = to;
  }
}

void Components::taken(uint32_t stream, bool blocking, TimePoint now) {
  Stream* const own = add(stream, now);
  if (!own) return;
  own->blocking |= blocking;
  if (!own->blocking) return;
  for (const Stream& other : streams_) {
    if (other.blocking && (stream == 0 || other.stream == 0)) join(*own, other);
  }
}

void Components::waits(uint32_t stream, uint32_t other) {
  const Stream *const own = find(stream), *const awaited = find(other);
  if (own && awaited) join(*own, *awaited);
}

// What is shown of the event is the latest record's.
void Components::records(uint32_t stream, uint32_t event) {
  const auto [known, added] = recorded_by_.try_emplace(event, stream);
  if (!added) waits(stream, std::exchange(known->second, stream));
}

void Components::touches(uint32_t stream, const RecordEffects& effects, const std::vector<Save>& saves, TimePoint now) {
  if (effects.reads_everything || effects.writes_everything) return join_all();
  Stream* const own = add(stream, now);
  if (!own) return;
  for (const Touched& part : effects.touched) {
    if (part.region.kind == Region::Kind::kVariable && part.written) return join_all();
    if (part.region.kind == Region::Kind::kVariable) continue;
    touch(*own, part.region.number, {part.begin, part.end}, part.written);
  }
  for (const Save& save : saves) touch(*own, save.segment, save.bytes, true);
}

// Whoever comes later meets them in these bytes.
void Components::touch(Stream& stream, uint64_t segment, ByteRanges::Range bytes, bool written) {
  Bytes& own = stream.segments[segment];
  if ((written ? own.written : own.touched).covers(bytes)) return;
  if (written) {
    const ByteRanges::Range added = add_to(own.written, bytes);
    own.touched.add(added);
    meet(stream, segment, added, true);
  }
  meet(stream, segment, add_to(own.touched, bytes), false);
}

void Components::meet(const Stream& stream, uint64_t segment, ByteRanges::Range bytes, bool written) {
  for (const Stream& other : streams_) {
    if (other.component == stream.component) continue;
    const auto found = other.segments.find(segment);
    if (found == other.segments.end()) continue;
    if ((written ? found->second.touched : found->second.written).intersects(bytes)) join(stream, other);
  }
}

bool Components::several() const {
  return !together_ && std::any_of(streams_.begin(), streams_.end(),
                                   [&](const Stream& each) { return each.component != streams_.front().component; });
}

std::vector<Components::Streams> Components::all() const {
  if (together_) return {};
  std::map<uint32_t, Streams> all;
  for (const Stream& each : streams_) all[each.component].push_back(each.stream);
  std::vector<Streams> components;
  for (auto& [component, streams] : all) components.push_back(std::move(streams));
  return components;
}

std::vector<Components::Streams> Components::of(uint32_t stream) const {
  auto components = all();
  std::erase_if(components,
                [&](const Streams& each) { return std::find(each.begin(), each.end(), stream) == each.end(); });
  return components;
}

TimePoint Components::since(uint32_t stream, TimePoint began, TimePoint now) const {
  if (together_) return began;
  const Stream* const own = find(stream);
  TimePoint since = now;
  for (const Stream& each : streams_) {
    if (own && each.component == own->component) since = std::min(since, each.since);
  }
  return since;
}

ByteRanges Components::touched_by_all(uint64_t segment) const {
  ByteRanges touched;
  for (const Stream& each : streams_) {
    const auto found = each.segments.find(segment);
    if (found != each.segments.end()) touched.add(found->second.touched);
  }
  return touched;
}

std::vector<CommittedBytes> Components::committed(const Streams& streams) {
  const auto is_one = [&](uint32_t stream) {
    return std::find(streams.begin(), streams.end(), stream) != streams.end();
  };
  std::map<uint64_t, ByteRanges> touched;
  for (const Stream& each : streams_) {
    if (!is_one(each.stream)) continue;
    for (const auto& [segment, bytes] : each.segments) touched[segment].add(bytes.touched);
  }
  std::erase_if(streams_, [&](const Stream& each) { return is_one(each.stream); });
  std::erase_if(recorded_by_, [&](const auto& each) { return is_one(each.second); });
  std::vector<CommittedBytes> committed;
  for (auto& [segment, bytes] : touched) committed.push_back({segment, bytes, bytes.without(touched_by_all(segment))});
  return committed;
}

}  // namespace heddle::worker
