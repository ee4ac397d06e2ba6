#include "daemon/copies.h"

#include <algorithm>

#include "daemon/segment_rules.h"

namespace heddle::daemon {
namespace {

// Of one session. A program's threads wait for their copies, so it has as many under way as it has threads.
constexpr auto kMostUnderWay = 16;

protocol::PeerEnd inside(const Segment& segment, protocol::PeerEnd end) {
  end.address -= segment.address;
  return end;
}

Segment* find(Session& session, uint64_t number) {
  const auto found = session.segments.find(number);
  return found == session.segments.end() ? nullptr : &found->second;
}

}  // namespace

bool Copies::on_gpu(const Session& session, const Segment& segment) const {
  // What moves to or from swap space is not to change meanwhile.
  const bool at_rest = segment.memory && segment.swap.place == Segment::Swap::kNone;
  return at_rest && shared_.registry.gpu_of(session, segment);
}

Status Copies::copy(Session& session, const protocol::CopyAcross& wanted) {
  const auto ends = check_copy(session, wanted);
  if (!ends) return tl::unexpected(ends.error());
  const auto under_way = std::count_if(under_way_.begin(), under_way_.end(),
                                       [&](const auto& each) { return each.second.session == session.id; });
  if (under_way >= kMostUnderWay) {
    answer(session, wanted.request,
           fail(ErrorCode::kLimitExceeded, "%ld copies of the session are under way", static_cast<long>(under_way)));
    return {};
  }
  for (const Segment* end : {ends->to, ends->from}) {
    if (on_gpu(session, *end)) continue;
    answer(
        session, wanted.request,
        fail(ErrorCode::kNotSupported, "segment %lu has no memory on a GPU", static_cast<unsigned long>(end->number)));
    return {};
  }
  const DeviceState& gpu = *shared_.registry.gpu_of(session, *ends->to);
  protocol::CopyMemory message;
  const uint64_t number = message.copy = keepers_.new_copy();
  message.to_bytes = ends->to->bytes.value;
  message.from_bytes = ends->from->bytes.value;
  message.to = inside(*ends->to, wanted.to);
  message.from = inside(*ends->from, wanted.from);
  message.width = wanted.width;
  message.height = wanted.height;
  message.depth = wanted.depth;
  for (Segment* end : {ends->to, ends->from}) ++end->copies;
  under_way_[number] = {session.id,         wanted.request, ends->to->number,
                        ends->from->number, gpu.id,         Bytes{wanted.width * wanted.height * wanted.depth}};
  keepers_.copy(gpu.id, gpu.config.uuid, message, ends->to->memory, ends->from->memory);
  return {};
}

void Copies::over(uint64_t copy, const Status& status) {
  const auto found = under_way_.find(copy);
  if (found == under_way_.end()) return;  // its memory went meanwhile
  const UnderWay was = found->second;
  under_way_.erase(found);
  Session& session = *shared_.registry.find_session(was.session);  // it has the segments still
  for (const uint64_t number : {was.to, was.from}) --find(session, number)->copies;
  DeviceState& gpu = shared_.registry.devices[was.device.value];
  if (status) {
    ++gpu.copies;
    gpu.copied += was.bytes;
  } else {
    shared_.log->debug("session {}: the keeper of device {} did not copy {} for it: {}", was.session.value,
                       was.device.value, to_string(was.bytes), status.error().text);
  }
  answer(session, was.request, status);
}

void Copies::end_all(Session& session, const Segment& segment) {
  for (auto each = under_way_.begin(); segment.copies != 0 && each != under_way_.end();) {
    const auto& [number, copy] = *each;
    if (copy.session != session.id || (copy.to != segment.number && copy.from != segment.number)) {
      ++each;
      continue;
    }
    for (const uint64_t number_of_end : {copy.to, copy.from}) {
      Segment& end = *find(session, number_of_end);
      --end.copies;
      end.returns_to.reset();  // a part of the copy may still run
    }
    keepers_.cancel(copy.device, number);
    answer(session, copy.request, fail(ErrorCode::kCancelled, "the memory was given back while it was copied"));
    each = under_way_.erase(each);
  }
}

// A program that has connected again repeats its request, and passes over the answer to the first.
void Copies::answer(const Session& session, uint64_t request, const Status& status) {
  if (!session.connection) return;
  protocol::CopyAnswer answer{request};
  answer.done = status ? 1 : 0;
  if (!status) protocol::set_text(answer.text, status.error().text);
  session.connection->send(answer);
}

}  // namespace heddle::daemon
