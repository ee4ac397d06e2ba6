#include "worker/testing/ring_case.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "protocol/ring_reader.h"
#include "worker/validation.h"

namespace heddle::worker {
namespace {

constexpr protocol::Window kWindow{1ull << 40, 1ull << 30, 1ull << 20};
constexpr device::Variable kVariable{0x5000, 4096};

void require(bool holds) {
  if (!holds) std::abort();
}

// What validation passes must lie where a worker may write, whatever the record says.
void require_inside(const device::CopyEnd& end, uint64_t width, uint64_t height, uint64_t depth,
                    const protocol::RingMemory& ring) {
  const uint64_t last = end.address + (depth - 1) * end.slice + (height - 1) * end.pitch + width - 1;
  require(last >= end.address);
  const auto bulk = reinterpret_cast<uint64_t>(ring.bulk().data());
  const auto within = [&](uint64_t base, uint64_t bytes) { return end.address >= base && last - base < bytes; };
  require(within(kWindow.base, kWindow.device_bytes + kWindow.host_bytes) || within(bulk, ring.bulk().size()) ||
          within(kVariable.address, kVariable.bytes));
}

void check(const protocol::Record& record, const protocol::RingMemory& ring) {
  using protocol::RecordType;
  const Bounds bounds{&ring, kWindow};
  static const DeviceModel model = *device_preset("P100");
  if (record.header.type == RecordType::kLaunch) {
    const auto launch = record.as<protocol::LaunchRecord>();
    image::KernelInfo kernel;
    kernel.parameter_bytes = launch.parameter_bytes;  // so that the length against the record decides
    const auto config = check_launch(launch, record.trailing<protocol::LaunchRecord>(), kernel, model);
    if (config) require(config->parameters.size() <= record.bytes.size());
  } else if (record.header.type == RecordType::kCopy) {
    const auto copy = check_copy(record.as<protocol::CopyRecord>(), bounds, kVariable, kVariable);
    if (!copy || copy->bytes == 0) return;
    const auto& [to, from, width, height, depth] = copy->shape;
    require_inside(to, width, height, depth, ring);
    require_inside(from, width, height, depth, ring);
  } else if (record.header.type == RecordType::kFill) {
    const auto fill = check_fill(record.as<protocol::FillRecord>(), bounds, kVariable);
    if (!fill || fill->bytes == 0) return;
    require_inside(fill->shape.to, fill->shape.width, fill->shape.height, fill->shape.depth, ring);
  } else if (record.header.type == RecordType::kSymbol) {
    const auto room = check_symbol(record.as<protocol::SymbolRecord>(), bounds);
    if (room) require(room->data() + room->size() <= ring.bulk().data() + ring.bulk().size());
  } else if (record.header.type == RecordType::kLibraryOpen) {
    const auto room = check_library_open(record.as<protocol::LibraryOpenRecord>(), bounds);
    if (room) require(room->data() + room->size() <= ring.bulk().data() + ring.bulk().size());
  } else if (record.header.type == RecordType::kLibraryCall) {
    const auto call =
        check_library_call(record.as<protocol::LibraryCallRecord>(), record.trailing<protocol::LibraryCallRecord>());
    if (call) require(library::demand(call->call()).has_value());
  } else {
    const bool passed = check_event(record.header).has_value();
    require(!passed || record.header.type != RecordType::kEventRecord || record.header.a < protocol::kMaxEvents);
  }
}

}  // namespace

void run_ring_case(std::span<const char> input) {
  static auto made = protocol::RingMemory::create({Bytes{128 * kKiB}, Bytes{128 * kKiB}});
  require(made.has_value());
  protocol::RingMemory& ring = made->second;
  const size_t bytes = std::min(input.size(), ring.records().size());
  std::memcpy(ring.records().data(), input.data(), bytes);
  ring.header().record_tail = bytes / protocol::kRecordAlign * protocol::kRecordAlign;
  auto reader = protocol::RingReader::attach(ring);
  require(reader.has_value());
  protocol::Record record;
  for (auto got = reader->next(record); got && *got; got = reader->next(record)) check(record, ring);
}

}  // namespace heddle::worker
