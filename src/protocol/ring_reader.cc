#include "protocol/ring_reader.h"

#include <algorithm>
#include <cstring>

namespace heddle::protocol {
namespace {

// The bytes that a record of this type has at least; 0 for a type that does not exist.
size_t smallest(RecordType type) {
  switch (type) {
    case RecordType::kLaunch:
      return sizeof(LaunchRecord);
    case RecordType::kCopy:
      return sizeof(CopyRecord);
    case RecordType::kFill:
      return sizeof(FillRecord);
    case RecordType::kSymbol:
      return sizeof(SymbolRecord);
    case RecordType::kLibraryOpen:
      return sizeof(LibraryOpenRecord);
    case RecordType::kLibraryCall:
      return sizeof(LibraryCallRecord);
    case RecordType::kNeed:
    case RecordType::kEventRecord:
    case RecordType::kEventWait:
    case RecordType::kHostCall:
    case RecordType::kMarker:
    case RecordType::kFree:
    case RecordType::kTaskEnd:
    case RecordType::kPrefetchModule:
    case RecordType::kReset:
    case RecordType::kTexture:
    case RecordType::kTextureGone:
    case RecordType::kLimit:
      return sizeof(RecordHeader);
    case RecordType::kPad:
      return kRecordAlign;
  }
  return 0;
}

unsigned long number(uint64_t value) {
  return static_cast<unsigned long>(value);
}

}  // namespace

Result<RingReader> RingReader::attach(RingMemory& memory) {
  const RingHeader& header = memory.header();
  return attach(memory, header.record_head.load(std::memory_order_acquire),
                header.committed.load(std::memory_order_acquire));
}

Result<RingReader> RingReader::attach(RingMemory& memory, uint64_t position, uint64_t sequence) {
  if (position % kRecordAlign != 0)
    return fail(ErrorCode::kProtocol, "the ring's head %lu is not where a record can start", number(position));
  return RingReader(memory, position, sequence);
}

Status RingReader::check(const RecordHeader& header, uint64_t available) const {
  const size_t least = smallest(header.type);
  if (least == 0)
    return fail(ErrorCode::kProtocol, "record type %u does not exist", static_cast<unsigned>(header.type));
  const uint64_t most = header.type == RecordType::kPad ? memory_->records().size() : kMaxRecordBytes;
  if (header.bytes % kRecordAlign != 0 || header.bytes < least || header.bytes > most || header.bytes > available)
    return fail(ErrorCode::kProtocol, "record %lu of type %u claims %u bytes, %lu are there", number(sequence_ + 1),
                static_cast<unsigned>(header.type), header.bytes, number(available));
  if (header.type == RecordType::kPad) return {};
  if (header.sequence != sequence_ + 1)
    return fail(ErrorCode::kProtocol, "record %lu claims sequence %lu", number(sequence_ + 1), number(header.sequence));
  if (header.stream >= kMaxStreams)
    return fail(ErrorCode::kProtocol, "record %lu names stream %u of %u", number(header.sequence), header.stream,
                kMaxStreams);
  return {};
}

Result<bool> RingReader::next(Record& record) {
  const auto area = memory_->records();
  for (;;) {
    const uint64_t tail = memory_->header().record_tail.load(std::memory_order_acquire);
    if (tail == position_) return false;
    if (tail < position_ || tail - position_ > area.size() || tail % kRecordAlign != 0)
      return fail(ErrorCode::kProtocol, "the ring's tail %lu cannot follow position %lu", number(tail),
                  number(position_));
    const uint64_t offset = position_ % area.size();
    const uint64_t available = std::min<uint64_t>(tail - position_, area.size() - offset);
    RecordHeader header;
    std::memcpy(&header, area.data() + offset, sizeof header);
    HEDDLE_TRY(check(header, available));
    if (header.type == RecordType::kPad) {
      position_ += header.bytes;
      continue;
    }
    record.bytes.resize(header.bytes);
    std::memcpy(record.bytes.data(), area.data() + offset, header.bytes);
    std::memcpy(record.bytes.data(), &header, sizeof header);  // as it was checked, whatever the peer wrote since
    record.header = header;
    position_ += header.bytes;
    ++sequence_;
    record.end = position_;
    return true;
  }
}

bool in_bulk(const RingMemory& memory, uint64_t position, uint64_t bytes) {
  const uint64_t size = memory.bulk().size();
  return bytes <= size && position % size <= size - bytes;
}

}  // namespace heddle::protocol
