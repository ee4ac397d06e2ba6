#include "protocol/ring_writer.h"

#include <algorithm>

namespace heddle::protocol {

bool RingWriter::has_space(uint64_t bytes) {
  const uint64_t size = memory_.records().size();
  if (tail_ + bytes - head_ <= size) return true;
  head_ = std::clamp(memory_.header().record_head.load(std::memory_order_acquire), head_, tail_);
  return tail_ + bytes - head_ <= size;
}

RecordHeader* RingWriter::start_record(RecordType type, uint32_t stream, uint32_t bytes) {
  const auto records = memory_.records();
  auto* header = reinterpret_cast<RecordHeader*>(records.data() + tail_ % records.size());
  *header = RecordHeader{type, bytes, sequence_ + 1, stream, 0, 0, 0};
  reserved_bytes_ = bytes;
  return header;
}

RecordHeader* RingWriter::reserve_bytes(RecordType type, uint32_t stream, size_t bytes) {
  const auto rounded = static_cast<uint32_t>(round_up(bytes, kRecordAlign));
  const uint64_t size = memory_.records().size();
  const uint64_t to_end = size - tail_ % size;
  if (rounded > to_end) {  // a record never wraps: a pad fills the rest
    if (!has_space(to_end + rounded)) return nullptr;
    const uint64_t before = sequence_;
    start_record(RecordType::kPad, 0, static_cast<uint32_t>(to_end))->sequence = before;
    tail_ += to_end;
  } else if (!has_space(rounded)) {
    return nullptr;
  }
  return start_record(type, stream, rounded);
}

uint64_t RingWriter::publish() {
  RingHeader& header = memory_.header();
  tail_ += reserved_bytes_;
  ++sequence_;
  header.last_sequence.store(sequence_, std::memory_order_relaxed);
  header.record_tail.store(tail_, std::memory_order_release);
  ring_bell(header.to_worker);
  return sequence_;
}

}  // namespace heddle::protocol
