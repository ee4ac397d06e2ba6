#include "client/stream/enqueue.h"

#include <algorithm>

namespace heddle::client {

using protocol::CopyEnd;
using protocol::FillRecord;
using protocol::Place;
using protocol::RecordType;

namespace {

Answer<uint64_t> append_fill(const StreamRef& stream, const Fill& fill) {
  const auto& [to, shape, value, element_bytes] = fill;
  VirtualDevice& device = *stream.device;
  const VirtualDevice::Lock lock = device.lock();
  HEDDLE_ANSWER(device.prepare(VirtualDevice::Begin::kNo));
  auto record = device.reserve<FillRecord>(RecordType::kFill, stream.slot);
  if (!record) return tl::unexpected(std::move(record).error());
  const bool variable = to.kind == CopyPlace::kVariable;
  (*record)->to =
      CopyEnd{variable ? Place::kSymbol : Place::kWindow, to.module, to.variable, 0, to.address, to.pitch, to.slice};
  (*record)->width = shape.width;
  (*record)->height = shape.height;
  (*record)->depth = shape.depth;
  (*record)->value = value;
  (*record)->element_bytes = element_bytes;
  return device.publish(stream.slot);
}

}  // namespace

Answer<uint64_t> enqueue_fill(const StreamRef& stream, const Fill& fill) {
  const CopyPlace& to = fill.to;
  const CopyShape& shape = fill.shape;
  if (!to.in_window()) return refuse(cudaErrorInvalidValue);
  const uint64_t bytes = (shape.depth - 1) * to.slice + (shape.height - 1) * to.pitch + shape.width;
  if (to.kind == CopyPlace::kPinned && !runtime().host_memory().covers(to.address, bytes))
    return refuse(cudaErrorInvalidValue);
  if (to.kind == CopyPlace::kDevice && !to.device->memory().covers(to.address, bytes))
    return refuse(cudaErrorInvalidValue);

  if (!to.managed) return append_fill(stream, fill);
  ManagedMemory& managed = runtime().managed_memory();
  const ManagedMemory::Stream in{*stream.device, stream.slot};
  const ManagedMemory::Submission submission(managed);
  HEDDLE_ANSWER(managed.before(in, to.address, bytes, ManagedAccess::kWrite));
  auto sequence = append_fill(stream, fill);
  managed.after(in, to.address, bytes, ManagedAccess::kWrite);
  return sequence;
}

// The call stands in the stream like any other record.
Done enqueue_host_call(const StreamRef& stream, std::function<void(cudaError_t)> run) {
  VirtualDevice& device = *stream.device;
  const VirtualDevice::Lock lock = device.lock();
  HEDDLE_ANSWER(device.prepare(VirtualDevice::Begin::kYes));
  auto sequence = device.append_plain(RecordType::kHostCall, stream.slot);
  if (!sequence) return tl::unexpected(std::move(sequence).error());
  auto call = [run = std::move(run)](cudaError_t status) {
    run(status);
    runtime().managed_memory().after_host_call();
  };
  device.host_calls().add(stream.slot, {*sequence, std::move(call), nullptr});
  return {};
}

Done enqueue_host_function(const StreamRef& stream, cudaHostFn_t function, void* data) {
  return enqueue_host_call(stream, [function, data](cudaError_t status) {
    if (status == cudaSuccess) function(data);
  });
}

Done enqueue_wait(const StreamRef& stream, uint64_t sequence, uint32_t event) {
  const VirtualDevice::Lock lock = stream.device->lock();
  HEDDLE_ANSWER(stream.device->prepare(VirtualDevice::Begin::kNo));
  auto appended = stream.device->append_plain(RecordType::kEventWait, stream.slot, event, sequence);
  return appended ? Done{} : Done(tl::unexpected(std::move(appended).error()));
}

Done enqueue_wait_until(const StreamRef& stream, VirtualDevice::Begin begin, std::function<bool()> ready) {
  VirtualDevice& device = *stream.device;
  const VirtualDevice::Lock lock = device.lock();
  HEDDLE_ANSWER(device.prepare(begin));
  auto sequence = device.append_plain(RecordType::kHostCall, stream.slot);
  if (!sequence) return tl::unexpected(std::move(sequence).error());
  device.host_calls().add(stream.slot, {*sequence, [](cudaError_t) {}, std::move(ready)});
  return {};
}

Done follow_home(VirtualDevice& side) {
  VirtualDevice& home = side.home();
  const auto marks = home.side_devices().outside_work();
  if (!side.side_devices().must_follow(marks)) return {};
  HEDDLE_ANSWER(home.start_pending());
  return enqueue_wait_until({&side, 0}, VirtualDevice::Begin::kNo,
                            [&home, marks] { return home.side_devices().reached(marks) || !home.failure(); });
}

Done join_side_devices(const StreamRef& stream) {
  VirtualDevice& home = *stream.device;
  if (thread_place().inside == &home) return {};
  std::vector<std::pair<const VirtualDevice*, std::vector<Mark>>> behind;
  uint64_t sum = 0;
  home.side_devices().for_each([&](VirtualDevice& side) {
    const VirtualDevice::Lock lock = side.lock();
    const std::vector<Mark> last{{0, side.ring().last_work().sequence}};
    sum += side.ring().last_work().sequence;
    if (!side.side_devices().reached(last)) behind.emplace_back(&side, last);
  });
  if (behind.empty()) return {};
  {
    const VirtualDevice::Lock lock = home.lock();
    StreamState& state = home.streams().at(stream.slot);
    if (state.non_blocking || state.joined == sum) return {};
    state.joined = sum;
  }
  return enqueue_wait_until(stream, VirtualDevice::Begin::kNo, [&home, behind] {
    return !home.failure() || std::all_of(behind.begin(), behind.end(), [](const auto& side) {
      return side.first->side_devices().reached(side.second);
    });
  });
}

Answer<uint64_t> enqueue_marker(const StreamRef& stream) {
  const VirtualDevice::Lock lock = stream.device->lock();
  HEDDLE_ANSWER(stream.device->prepare(VirtualDevice::Begin::kNo));
  return stream.device->append_plain(RecordType::kMarker, stream.slot);
}

Answer<uint64_t> last_of(const StreamRef& stream) {
  const VirtualDevice::Lock lock = stream.device->lock();
  StreamState& own = stream.device->streams().at(stream.slot);
  if (stream.slot != 0) return own.last;
  bool others_later = false;
  for (uint32_t i = 1; i < stream.device->streams().size() && !others_later; ++i) {
    const StreamState& other = stream.device->streams().at(i);
    others_later = !other.non_blocking && other.last > own.last && !stream.device->ring().stream_reached(i, other.last);
  }
  if (!others_later) return own.last;
  HEDDLE_ANSWER(stream.device->prepare(VirtualDevice::Begin::kNo));
  return stream.device->append_plain(protocol::RecordType::kMarker, 0);
}

}  // namespace heddle::client
