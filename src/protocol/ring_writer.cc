#include "protocol/ring_writer.h"

#include <algorithm>

namespace heddle::protocol {

// Learns what the worker has committed. The space of committed records is still intact up to tail_, so their headers
// say how far bulk payloads are free.
void RingWriter::reclaim() {
  const uint64_t head = memory_.header().record_head.load(std::memory_order_acquire);
  const auto records = memory_.records();
  while (head_ < head && head_ < tail_) {
    const auto* header = reinterpret_cast<const RecordHeader*>(records.data() + head_ % records.size());
    bulk_head_ = std::max(bulk_head_, header->bulk_end);
    head_ += header->bytes;
  }
}

bool RingWriter::has_room(uint64_t bytes) {
  const uint64_t size = memory_.records().size();
  if (tail_ + bytes - head_ <= size) return true;
  reclaim();
  return tail_ + bytes - head_ <= size;
}

RecordHeader* RingWriter::start_record(RecordType type, uint32_t stream, uint32_t bytes) {
  const auto records = memory_.records();
  auto* header = reinterpret_cast<RecordHeader*>(records.data() + tail_ % records.size());
  *header = RecordHeader{type, bytes, sequence_ + 1, stream, 0, 0, 0, bulk_tail_};
  reserved_bytes_ = bytes;
  return header;
}

RecordHeader* RingWriter::reserve_bytes(RecordType type, uint32_t stream, size_t bytes) {
  const auto rounded = static_cast<uint32_t>(round_up(bytes, kRecordAlign));
  const uint64_t size = memory_.records().size();
  const uint64_t to_end = size - tail_ % size;
  if (rounded > to_end) {  // a record never wraps: a pad fills the rest
    if (!has_room(to_end + rounded)) return nullptr;
    const uint64_t before = sequence_;
    start_record(RecordType::kPad, 0, static_cast<uint32_t>(to_end))->sequence = before;
    tail_ += to_end;
  } else if (!has_room(rounded)) {
    return nullptr;
  }
  return start_record(type, stream, rounded);
}

uint64_t RingWriter::publish() {
  RingHeader& header = memory_.header();
  // The payload reserved since reserve() belongs to this record.
  const auto records = memory_.records();
  reinterpret_cast<RecordHeader*>(records.data() + tail_ % records.size())->bulk_end = bulk_tail_;
  tail_ += reserved_bytes_;
  ++sequence_;
  header.last_sequence.store(sequence_, std::memory_order_relaxed);
  header.record_tail.store(tail_, std::memory_order_release);
  ring_bell(header.to_worker);
  return sequence_;
}

uint64_t RingWriter::bulk_room() {
  reclaim();
  const uint64_t size = memory_.bulk().size();
  const uint64_t free = size - (bulk_tail_ - bulk_head_);
  return std::min(free, size - bulk_tail_ % size);
}

uint64_t RingWriter::reserve_bulk(uint64_t bytes) {
  const uint64_t size = memory_.bulk().size();
  const uint64_t to_end = size - bulk_tail_ % size;
  const uint64_t skip = bytes > to_end ? to_end : 0;  // payloads do not wrap
  if (bulk_tail_ + skip + bytes - bulk_head_ > size) {
    reclaim();
    if (bulk_tail_ + skip + bytes - bulk_head_ > size) return kNoRoom;
  }
  bulk_tail_ += skip;
  const uint64_t position = bulk_tail_;
  bulk_tail_ += round_up(bytes, 64);
  return position;
}

}  // namespace heddle::protocol
