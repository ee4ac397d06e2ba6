#pragma once

#include <span>

#include "core/fd.h"
#include "protocol/bell.h"
#include "protocol/buffer_table.h"
#include "protocol/ring.h"

namespace heddle::protocol {

struct RingSizes {
  Bytes records{4 * kMiB};
  Bytes bulk{32 * kMiB};
};

// One mapping of a ring, in whichever process. The offsets are read from the header once, at attach, and checked;
// what a peer writes there later changes nothing here.
class RingMemory {
 public:
  // heddled: makes the memory and lays it out. Sizes must be powers of two.
  static Result<std::pair<Fd, RingMemory>> create(RingSizes sizes);
  // Client, worker, heddled again: `fd` must be sealed, and laid out as create lays out.
  static Result<RingMemory> attach(const Fd& fd);

  RingHeader& header() const { return *reinterpret_cast<RingHeader*>(at(0)); }
  std::span<StreamSlot> streams() const { return {reinterpret_cast<StreamSlot*>(at(stream_table_)), kMaxStreams}; }
  std::span<EventSlot> events() const { return {reinterpret_cast<EventSlot*>(at(event_table_)), kMaxEvents}; }
  std::span<TextureSlot> textures() const { return {reinterpret_cast<TextureSlot*>(at(texture_table_)), kMaxTextures}; }
  std::span<char> print_area() const { return {at(print_area_), kPrintBytes}; }
  std::span<char> report_area() const { return {at(report_area_), kReportBytes}; }
  std::span<char> records() const { return {at(record_area_), record_bytes_}; }
  std::span<char> bulk() const { return {at(bulk_area_), bulk_bytes_}; }
  // `base`: of the session's window.
  BufferTable buffers(uint64_t base) const { return {{at(buffer_table_), BufferTable::kBytes}, base}; }
  Bytes size() const { return Bytes{mapping_.size()}; }

 private:
  char* at(uint64_t offset) const { return static_cast<char*>(mapping_.data()) + offset; }

  Mapping mapping_;
  uint64_t stream_table_ = 0, event_table_ = 0, texture_table_ = 0, print_area_ = 0, report_area_ = 0;
  uint64_t record_area_ = 0, bulk_area_ = 0, buffer_table_ = 0;
  uint64_t record_bytes_ = 0, bulk_bytes_ = 0;
};

}  // namespace heddle::protocol
