#include "client/copy/copy.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "client/copy/copy_pieces.h"

namespace heddle::client {

using protocol::CopyRecord;
using protocol::RecordType;

namespace {

CopyPlace moved(CopyPlace place, const CopyOffset& at) {
  place.address += at.z * place.slice + at.y * place.pitch + at.x;
  return place;
}

// Copies between host memory that is pageable at one end wait for the stream and then need no worker.
Done copy_on_host(const StreamRef& stream, const CopyPlace& to, const CopyPlace& from, const CopyShape& shape) {
  VirtualDevice& device = *stream.device;
  HEDDLE_ANSWER(stream.slot == 0 ? device.synchronize()
                                 : device.synchronize_stream(stream.slot, device.streams().state(stream.slot).last));
  copy_rows_on_host(to, from, shape);
  return {};
}

// Both ends are where the worker sees them.
Done copy_directly(const StreamRef& stream, const CopyPlace& to, const CopyPlace& from, const CopyShape& shape,
                   CopyMode mode) {
  VirtualDevice& device = *stream.device;
  uint64_t sequence;
  {
    const VirtualDevice::Lock lock = device.lock();
    HEDDLE_ANSWER(device.prepare(VirtualDevice::Begin::kNo));
    auto record = device.reserve<CopyRecord>(RecordType::kCopy, stream.slot);
    if (!record) return tl::unexpected(std::move(record).error());
    (*record)->to = end_at(to, {});
    (*record)->from = end_at(from, {});
    (*record)->width = shape.width;
    (*record)->height = shape.height;
    (*record)->depth = shape.depth;
    sequence = device.publish(stream.slot);
  }
  const bool host_end = to.kind == CopyPlace::kPinned || from.kind == CopyPlace::kPinned;
  return mode == CopyMode::kBlocking && host_end ? device.synchronize_stream(stream.slot, sequence) : Done{};
}

// Done with all it was given, and what was allocated on it has its memory.
Done await_memory(VirtualDevice& device) {
  {
    const VirtualDevice::Lock lock = device.lock();
    HEDDLE_ANSWER(device.prepare(VirtualDevice::Begin::kYes));
    HEDDLE_ANSWER(device.append_plain(RecordType::kMarker, 0));  // behind what waits for the segments
  }
  return device.synchronize();
}

uint64_t last_of(VirtualDevice& device) {
  const VirtualDevice::Lock lock = device.lock();
  return device.ring().last_sequence();
}

protocol::PeerEnd peer_end(const CopyPlace& place) {
  return {place.address, place.pitch, place.slice};
}

// Whether it is never run again, which is so soon after it is done; false where that takes long.
Answer<bool> is_committed_soon(const RingPort& ring, uint64_t sequence) {
  constexpr Duration kPatience = std::chrono::milliseconds(100);
  const MonotonicClock clock;
  const TimePoint limit = clock.now() + kPatience;
  const auto is = [&] { return ring.committed() >= sequence; };
  HEDDLE_ANSWER(ring.wait_until([&] {
    if (is() || clock.now() >= limit) return true;
    if (ring.reached(sequence)) ring.want_commit();
    return false;
  }));
  return is();
}

// While it is held nobody hands work over to the device, and all that was handed over is done, and never run again.
// None where that takes long: the threads that wait for the lock are not to wait for another one's kernel, too.
Answer<std::optional<VirtualDevice::Lock>> at_rest(VirtualDevice& device) {
  VirtualDevice::Lock lock = device.lock();
  const auto is = is_committed_soon(device.ring(), device.ring().last_sequence());
  if (!is) return tl::unexpected(is.error());
  if (!*is) return std::nullopt;
  return lock;
}

// By the keeper of a GPU, from one's memory into the other's, while both compute. False: it has to go through here.
Answer<bool> copy_by_keeper(const CopyPlace& to, const CopyPlace& from, const CopyShape& shape) {
  // HARDWARE.md: a keeper first maps both segments, 0.2 ms each; until then 4 GB/s have done as much.
  constexpr uint64_t kWorthAsking = 2 * kMiB;
  // A worker hears of what its own copies write to arrays, not of a keeper's.
  if (to.kind != CopyPlace::kDevice || from.kind != CopyPlace::kDevice || to.in_array ||
      to.device->model().kind != DeviceKind::kCuda || shape.width * shape.height * shape.depth < kWorthAsking)
    return false;
  HEDDLE_ANSWER(await_memory(*from.device));
  HEDDLE_ANSWER(await_memory(*to.device));
  // Else the copy could read what a next worker of that device puts back.
  const auto stays = is_committed_soon(from.device->ring(), last_of(*from.device));
  if (!stays) return tl::unexpected(stays.error());
  if (!*stays) return false;
  // A worker that saves a buffer before its work would, in its successor, put back what the keeper has written over.
  std::optional<VirtualDevice::Lock> alone;
  if (to.device->ring().header().holds_back.load(std::memory_order_relaxed) != 0) {
    auto locked = at_rest(*to.device);
    if (!locked) return tl::unexpected(locked.error());
    if (!*locked) return false;
    alone = std::move(*locked);
  }
  const auto answer =
      to.device->session().copy_across({0, peer_end(to), peer_end(from), shape.width, shape.height, shape.depth});
  if (!answer) return tl::unexpected(answer.error());
  return answer->done != 0;
}

// Through this process, a part at a time: out of one device, into the other.
Done copy_staged(const StreamRef& stream, const CopyPlace& to, const CopyPlace& from, const CopyShape& shape) {
  constexpr uint64_t kPart = 4 * kMiB;
  const StreamRef out{from.device, from.device == stream.device ? stream.slot : 0};
  const StreamRef in{to.device, to.device == stream.device ? stream.slot : 0};
  std::vector<char> part(std::min(kPart, shape.width * shape.height * shape.depth));
  CopyPlace host;
  host.address = reinterpret_cast<uint64_t>(part.data());
  CopyPieces pieces(shape, to, from, part.size());
  while (const auto piece = pieces.next()) {
    host.pitch = piece->width;
    const CopyShape rows{piece->width, piece->rows, 1};
    HEDDLE_ANSWER(copy_out(out, host, moved(from, piece->at), rows));
    HEDDLE_ANSWER(copy_in(in, moved(to, piece->at), host, rows));
  }
  return {};
}

Done copy_across(const StreamRef& stream, const CopyPlace& to, const CopyPlace& from, const CopyShape& shape) {
  HEDDLE_ANSWER(from.device->synchronize());
  HEDDLE_ANSWER(to.device->synchronize());
  const auto copied = copy_by_keeper(to, from, shape);
  if (!copied) return tl::unexpected(copied.error());
  return *copied ? Done{} : copy_staged(stream, to, from, shape);
}

uint64_t extent(const CopyPlace& place, const CopyShape& shape) {
  return (shape.depth - 1) * place.slice + (shape.height - 1) * place.pitch + shape.width;
}

Done check_range(const CopyPlace& place, const CopyShape& shape) {
  if (place.kind != CopyPlace::kDevice && place.kind != CopyPlace::kPinned) return {};
  const uint64_t bytes = extent(place, shape);
  const bool covered = place.kind == CopyPlace::kDevice ? place.device->memory().covers(place.address, bytes)
                                                        : runtime().host_memory().covers(place.address, bytes);
  return covered ? Done{} : refuse(cudaErrorInvalidValue);
}

Done copy_by_places(const StreamRef& stream, const CopyPlace& to, const CopyPlace& from, const CopyShape& shape,
                    CopyMode mode) {
  if (!to.on_device() && !from.on_device()) {
    const bool async_pinned = to.in_window() && from.in_window() && mode == CopyMode::kAsync;
    return async_pinned ? copy_directly(stream, to, from, shape, mode) : copy_on_host(stream, to, from, shape);
  }
  if (to.on_device() && from.on_device() && to.device != from.device) return copy_across(stream, to, from, shape);

  // Memory of another device than the stream's: its own default stream does it, after what the caller sees as earlier.
  VirtualDevice* const owner = to.on_device() ? to.device : from.device;
  const StreamRef own = owner == stream.device ? stream : StreamRef{owner, 0};
  if (owner != stream.device) HEDDLE_ANSWER(stream.device->synchronize());
  if (to.in_window() && from.in_window()) return copy_directly(own, to, from, shape, mode);
  return to.in_window() ? copy_in(own, to, from, shape) : copy_out(own, to, from, shape);
}

// The device has it while the copy is made, wherever the host touched it.
Done copy_managed(const StreamRef& stream, const CopyPlace& to, const CopyPlace& from, const CopyShape& shape,
                  CopyMode mode) {
  ManagedMemory& managed = runtime().managed_memory();
  const ManagedMemory::Stream in{*stream.device, stream.slot};
  const ManagedMemory::Submission submission(managed);
  const uint64_t read = from.managed ? extent(from, shape) : 0, written = to.managed ? extent(to, shape) : 0;
  HEDDLE_ANSWER(managed.before(in, from.address, read, ManagedAccess::kRead));
  HEDDLE_ANSWER(managed.before(in, to.address, written, ManagedAccess::kWrite));
  Done copied = copy_by_places(stream, to, from, shape, mode);
  managed.after(in, to.address, written, ManagedAccess::kWrite);
  return copied;
}

}  // namespace

Done copy(const StreamRef& stream, const CopyPlace& to, const CopyPlace& from, CopyShape shape, CopyMode mode) {
  if (shape.empty()) return {};
  HEDDLE_ANSWER(check_range(to, shape));
  HEDDLE_ANSWER(check_range(from, shape));
  return to.managed || from.managed ? copy_managed(stream, to, from, shape, mode)
                                    : copy_by_places(stream, to, from, shape, mode);
}

}  // namespace heddle::client
