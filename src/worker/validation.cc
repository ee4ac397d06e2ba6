#include "worker/validation.h"

#include <cstring>
#include <optional>

#include "protocol/ring_reader.h"

namespace heddle::worker {
namespace {

using protocol::Place;

constexpr uint32_t kMaxGridX = 0x7fffffff, kMaxGridYz = 65535, kMaxBlockZ = 64;

unsigned long number(uint64_t value) {
  return static_cast<unsigned long>(value);
}

std::optional<uint64_t> product(uint64_t a, uint64_t b) {
  uint64_t result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

std::optional<uint64_t> sum(uint64_t a, uint64_t b) {
  uint64_t result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// Rows, slices and how many bytes they are; known not to overflow.
struct Box {
  uint64_t width, height, depth, bytes;
};

Checked<Box> box_of(uint64_t sequence, uint64_t width, uint64_t height, uint64_t depth) {
  const auto plane = product(width, height);
  const auto bytes = plane ? product(*plane, depth) : std::nullopt;
  if (!bytes)
    return malformed("record %lu: %lu x %lu x %lu bytes are more than there are addresses", number(sequence),
                     number(width), number(height), number(depth));
  return Box{width, height, depth, *bytes};
}

// Bytes from the first to behind the last one of `box`; nullopt where rows or slices overlap, or it overflows. Since
// nothing overlaps, the extent bounds the work too.
std::optional<uint64_t> extent(const Box& box, uint64_t pitch, uint64_t slice) {
  std::optional<uint64_t> total = box.width;
  if (box.height > 1) {
    if (pitch < box.width) return std::nullopt;
    const auto rows = product(box.height - 1, pitch);
    total = rows ? sum(*rows, box.width) : std::nullopt;
  }
  if (total && box.depth > 1) {
    if (slice < *total) return std::nullopt;
    const auto slices = product(box.depth - 1, slice);
    total = slices ? sum(*slices, *total) : std::nullopt;
  }
  return total;
}

struct Located {
  device::CopyEnd end;
  bool on_host = false;
};

Checked<Located> locate_in_bulk(uint64_t sequence, const protocol::CopyEnd& end, const Box& box, const Bounds& bounds) {
  if (!protocol::in_bulk(*bounds.ring, end.address, box.bytes))
    return malformed("record %lu: %lu bytes at bulk position %lu do not lie in the bulk area", number(sequence),
                     number(box.bytes), number(end.address));
  const auto bulk = bounds.ring->bulk();
  const auto address = reinterpret_cast<uint64_t>(bulk.data()) + end.address % bulk.size();
  return Located{{address, box.width, box.width * box.height}, true};
}

Checked<Located> locate(uint64_t sequence, const protocol::CopyEnd& end, const Box& box, const Bounds& bounds,
                        device::Variable variable) {
  if (end.place == Place::kBulk) return locate_in_bulk(sequence, end, box, bounds);
  if (end.place != Place::kWindow && end.place != Place::kSymbol)
    return malformed("record %lu: place %u does not exist", number(sequence), static_cast<unsigned>(end.place));
  const auto bytes = extent(box, end.pitch, end.slice);
  if (!bytes)
    return malformed("record %lu: rows of %lu bytes, %lu apart, slices %lu apart, overlap or overflow",
                     number(sequence), number(box.width), number(end.pitch), number(end.slice));
  if (end.place == Place::kSymbol) {
    if (end.address > variable.bytes || *bytes > variable.bytes - end.address)
      return malformed("record %lu: %lu bytes at offset %lu of a variable of %lu bytes", number(sequence),
                       number(*bytes), number(end.address), number(variable.bytes));
    return Located{{variable.address + end.address, end.pitch, end.slice}, false};
  }
  const protocol::Window& window = bounds.window;
  const uint64_t offset = end.address - window.base, size = window.device_bytes + window.host_bytes;
  if (offset >= size || *bytes > size - offset)
    return malformed("record %lu: %lu bytes at %#lx do not lie in the session's window at %#lx, %lu bytes",
                     number(sequence), number(*bytes), number(end.address), number(window.base), number(size));
  return Located{{end.address, end.pitch, end.slice}, window.holds_on_host(end.address)};
}

device::CopyDirection direction(bool from_host, bool to_host) {
  if (from_host) return to_host ? device::CopyDirection::kOnHost : device::CopyDirection::kToDevice;
  return to_host ? device::CopyDirection::kToHost : device::CopyDirection::kOnDevice;
}

bool is_grid(const uint32_t (&grid)[3]) {
  return grid[0] - 1u < kMaxGridX && grid[1] - 1u < kMaxGridYz && grid[2] - 1u < kMaxGridYz;
}

bool is_block(const uint32_t (&block)[3], const DeviceModel& model) {
  const uint64_t most = model.max_threads_per_block;
  if (block[0] == 0 || block[1] == 0 || block[2] == 0) return false;
  if (block[0] > most || block[1] > most || block[2] > kMaxBlockZ) return false;
  return uint64_t{block[0]} * block[1] * block[2] <= most;
}

}  // namespace

Checked<device::LaunchConfig> check_launch(const protocol::LaunchRecord& record, std::span<const std::byte> trailing,
                                           const image::KernelInfo& kernel, const DeviceModel& model) {
  const char* name = kernel.name.c_str();
  if (record.parameter_bytes != kernel.parameter_bytes || record.parameter_bytes > trailing.size())
    return malformed("record %lu: kernel %.200s takes %u bytes of parameters, the record names %u and carries %zu",
                     number(record.header.sequence), name, kernel.parameter_bytes, record.parameter_bytes,
                     trailing.size());
  const auto& [grid, block] = std::tie(record.grid, record.block);
  if (!is_grid(grid) || !is_block(block, model))
    return refused(kCudaInvalidConfiguration, "kernel %.200s: grid %u x %u x %u of blocks %u x %u x %u", name, grid[0],
                   grid[1], grid[2], block[0], block[1], block[2]);
  const uint32_t threads = block[0] * block[1] * block[2];
  if (threads > kernel.max_threads)
    return refused(kCudaLaunchOutOfResources, "kernel %.200s: blocks of %u threads, it was built for %u", name, threads,
                   kernel.max_threads);
  const uint64_t shared = uint64_t{record.dynamic_shared_bytes} + kernel.static_shared;
  const uint64_t most_shared = std::max(model.shared_bytes_per_block, model.shared_bytes_per_block_optin);
  if (shared > most_shared)
    return refused(kCudaInvalidValue, "kernel %.200s: %lu bytes of shared memory a block, the device has %lu", name,
                   number(shared), number(most_shared));
  device::LaunchConfig config;
  config.grid = {grid[0], grid[1], grid[2]};
  config.block = {block[0], block[1], block[2]};
  config.dynamic_shared_bytes = record.dynamic_shared_bytes;
  config.cooperative = record.cooperative != 0;
  config.parameters = trailing.first(record.parameter_bytes);
  return config;
}

Checked<CheckedCopy> check_copy(const protocol::CopyRecord& record, const Bounds& bounds, device::Variable to,
                                device::Variable from) {
  const uint64_t sequence = record.header.sequence;
  const auto box = box_of(sequence, record.width, record.height, record.depth);
  if (!box) return tl::unexpected(box.error());
  if (box->bytes == 0) return CheckedCopy{};
  const auto target = locate(sequence, record.to, *box, bounds, to);
  if (!target) return tl::unexpected(target.error());
  const auto source = locate(sequence, record.from, *box, bounds, from);
  if (!source) return tl::unexpected(source.error());
  CheckedCopy copy;
  copy.shape = {target->end, source->end, box->width, box->height, box->depth};
  copy.direction = direction(source->on_host, target->on_host);
  copy.bytes = box->bytes;
  return copy;
}

bool ends_at_program(const protocol::CopyRecord& copy, const protocol::Window& window) {
  if (copy.to.place == protocol::Place::kBulk) return true;
  return copy.to.place == protocol::Place::kWindow && window.holds_on_host(copy.to.address);
}

Checked<CheckedFill> check_fill(const protocol::FillRecord& record, const Bounds& bounds, device::Variable to) {
  const uint64_t sequence = record.header.sequence;
  const uint32_t element = record.element_bytes;
  if (element != 1 && element != 2 && element != 4)
    return malformed("record %lu: fills elements of %u bytes", number(sequence), element);
  if (record.to.place == Place::kBulk) return malformed("record %lu: fills the bulk area", number(sequence));
  const auto box = box_of(sequence, record.width, record.height, record.depth);
  if (!box) return tl::unexpected(box.error());
  if (box->bytes == 0) return CheckedFill{};
  const auto target = locate(sequence, record.to, *box, bounds, to);
  if (!target) return tl::unexpected(target.error());
  if (box->width % element != 0 || target->end.address % element != 0)
    return refused(kCudaInvalidValue, "a fill of rows of %lu bytes at %#lx in elements of %u bytes", number(box->width),
                   number(target->end.address), element);
  CheckedFill fill;
  fill.shape = {target->end, box->width, box->height, box->depth, record.value, element};
  fill.bytes = box->bytes;
  return fill;
}

Checked<std::span<char>> check_symbol(const protocol::SymbolRecord& record, const Bounds& bounds) {
  constexpr uint64_t kAnswerBytes = 2 * sizeof(uint64_t);
  if (!protocol::in_bulk(*bounds.ring, record.position, kAnswerBytes))
    return malformed("record %lu: bulk position %lu has no space for a symbol's address and size",
                     number(record.header.sequence), number(record.position));
  const auto bulk = bounds.ring->bulk();
  return bulk.subspan(record.position % bulk.size(), kAnswerBytes);
}

Checked<std::span<char>> check_library_open(const protocol::LibraryOpenRecord& record, const Bounds& bounds) {
  const auto library = static_cast<library::Library>(record.library);
  if (!library::exists(library))
    return malformed("record %lu opens library %u, which does not exist", number(record.header.sequence),
                     record.library);
  if (!protocol::in_bulk(*bounds.ring, record.position, sizeof(protocol::LibraryOpened)))
    return malformed("record %lu: bulk position %lu has no space for what opening a library says",
                     number(record.header.sequence), number(record.position));
  const auto bulk = bounds.ring->bulk();
  return bulk.subspan(record.position % bulk.size(), sizeof(protocol::LibraryOpened));
}

Checked<CheckedCall> check_library_call(const protocol::LibraryCallRecord& record,
                                        std::span<const std::byte> trailing) {
  if (record.words > library::kMostWords || record.words * sizeof(uint64_t) > trailing.size())
    return malformed("record %lu: a library call of %u words, of which %zu bytes are there",
                     number(record.header.sequence), record.words, trailing.size());
  CheckedCall call;
  call.library = static_cast<library::Library>(record.library);
  call.function = record.function;
  call.count = record.words;
  std::memcpy(call.words.data(), trailing.data(), record.words * sizeof(uint64_t));
  const auto demand = library::demand(call.call());
  if (!demand) return malformed("record %lu: %s", number(record.header.sequence), demand.error().text.c_str());
  return call;
}

Checked<void> check_event(const protocol::RecordHeader& header) {
  if (header.type == protocol::RecordType::kEventRecord && header.a >= protocol::kMaxEvents)
    return malformed("record %lu names event %lu of %u", number(header.sequence), number(header.a),
                     protocol::kMaxEvents);
  if (header.type == protocol::RecordType::kEventWait && header.b >= header.sequence)
    return malformed("record %lu waits for record %lu, which comes later", number(header.sequence), number(header.b));
  return {};
}

}  // namespace heddle::worker
