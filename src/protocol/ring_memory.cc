#include "protocol/ring_memory.h"

#include <sys/mman.h>

#include <bit>
#include <new>

namespace heddle::protocol {
namespace {

struct Layout {
  uint64_t stream_table, event_table, texture_table, print_area, report_area, record_area, bulk_area, buffer_table,
      total;
};

constexpr uint64_t kPage = 4096;

constexpr Layout layout_of(uint64_t record_bytes, uint64_t bulk_bytes) {
  Layout layout{};
  layout.stream_table = round_up(sizeof(RingHeader), kPage);
  layout.event_table = layout.stream_table + round_up(kMaxStreams * sizeof(StreamSlot), kPage);
  layout.texture_table = layout.event_table + round_up(kMaxEvents * sizeof(EventSlot), kPage);
  layout.print_area = layout.texture_table + round_up(kMaxTextures * sizeof(TextureSlot), kPage);
  layout.report_area = layout.print_area + kPrintBytes;
  layout.record_area = layout.report_area + kReportBytes;
  layout.bulk_area = layout.record_area + record_bytes;
  layout.buffer_table = layout.bulk_area + bulk_bytes;
  layout.total = layout.buffer_table + BufferTable::kBytes;
  return layout;
}

constexpr uint64_t kLargest = 1ull << 40;

bool is_area_size(uint64_t bytes) {
  return std::has_single_bit(bytes) && bytes >= 2 * kMaxRecordBytes && bytes < kLargest;
}

}  // namespace

Result<std::pair<Fd, RingMemory>> RingMemory::create(RingSizes sizes) {
  const uint64_t records = sizes.records.value, bulk = sizes.bulk.value;
  if (!is_area_size(records) || !is_area_size(bulk))
    return fail(ErrorCode::kInvalidArgument, "ring areas of %s and %s: each must be a power of two from 128 KiB",
                to_string(sizes.records).c_str(), to_string(sizes.bulk).c_str());
  const Layout layout = layout_of(records, bulk);
  auto fd = create_memfd("heddle-ring", Bytes{layout.total});
  if (!fd) return tl::unexpected(std::move(fd).error());
  auto mapping = map_shared(*fd, Bytes{layout.total});
  if (!mapping) return tl::unexpected(std::move(mapping).error());
  auto* header = new (mapping->data()) RingHeader{};
  header->magic = kRingMagic;
  header->version = kProtocolVersion;
  header->total_bytes = layout.total;
  header->stream_table = layout.stream_table;
  header->event_table = layout.event_table;
  header->texture_table = layout.texture_table;
  header->print_area = layout.print_area;
  header->report_area = layout.report_area;
  header->record_area = layout.record_area;
  header->bulk_area = layout.bulk_area;
  header->buffer_table = layout.buffer_table;
  header->record_bytes = records;
  header->bulk_bytes = bulk;
  mapping->reset();
  auto ring = attach(*fd);
  if (!ring) return tl::unexpected(std::move(ring).error());
  return std::pair(std::move(*fd), std::move(*ring));
}

Result<RingMemory> RingMemory::attach(const Fd& fd) {
  auto size = sealed_size(fd);
  if (!size) return tl::unexpected(std::move(size).error());
  if (size->value < sizeof(RingHeader))
    return fail(ErrorCode::kProtocol, "a ring of %lu bytes", static_cast<unsigned long>(size->value));
  RingMemory ring;
  auto mapping = map_shared(fd, *size);
  if (!mapping) return tl::unexpected(std::move(mapping).error());
  ring.mapping_ = std::move(*mapping);
  const RingHeader& header = ring.header();
  if (header.magic != kRingMagic || header.version != kProtocolVersion)
    return fail(ErrorCode::kProtocol, "not a ring of protocol version %u (magic %#x, version %u)", kProtocolVersion,
                header.magic, header.version);
  // The layout follows from the two sizes: only they are believed, and only once they fit the sealed memory.
  ring.record_bytes_ = header.record_bytes;
  ring.bulk_bytes_ = header.bulk_bytes;
  if (!is_area_size(ring.record_bytes_) || !is_area_size(ring.bulk_bytes_) ||
      layout_of(ring.record_bytes_, ring.bulk_bytes_).total != size->value)
    return fail(ErrorCode::kProtocol, "a ring's areas of %lu and %lu bytes do not fit its %lu bytes",
                static_cast<unsigned long>(ring.record_bytes_), static_cast<unsigned long>(ring.bulk_bytes_),
                static_cast<unsigned long>(size->value));
  const Layout layout = layout_of(ring.record_bytes_, ring.bulk_bytes_);
  ring.stream_table_ = layout.stream_table;
  ring.event_table_ = layout.event_table;
  ring.texture_table_ = layout.texture_table;
  ring.print_area_ = layout.print_area;
  ring.report_area_ = layout.report_area;
  ring.record_area_ = layout.record_area;
  ring.bulk_area_ = layout.bulk_area;
  ring.buffer_table_ = layout.buffer_table;
  // A dump would have the system fill in all of its pages.
  (void)::madvise(ring.at(ring.buffer_table_), BufferTable::kBytes, MADV_DONTDUMP);
  return ring;
}

}  // namespace heddle::protocol
