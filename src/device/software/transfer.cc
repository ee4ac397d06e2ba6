#include "device/software/transfer.h"

#include <cstring>

#include "core/stream_copy.h"

namespace heddle::software {
namespace {

using device::CopyDirection;
using device::CopyEnd;
using device::CopyShape;
using device::FillShape;

std::byte* pointer(uint64_t address) {
  return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address));
}

uint64_t row_address(const CopyEnd& end, uint64_t row, uint64_t slice) {
  return end.address + row * end.pitch + slice * end.slice;
}

// Rows that follow each other without gaps are one long row: `rows_whole` where pitch equals width, and so on.
struct Rows {
  uint64_t width, height, depth;
};

bool contiguous_rows(const CopyEnd& end, const Rows& rows) {
  return rows.height == 1 || end.pitch == rows.width;
}

bool contiguous_slices(const CopyEnd& end, const Rows& rows) {
  return rows.depth == 1 || end.slice == rows.width * rows.height;
}

template <class... Ends>
Rows merge(Rows rows, const Ends&... ends) {
  if (!(contiguous_rows(ends, rows) && ...)) return rows;
  if (!(contiguous_slices(ends, rows) && ...)) return {rows.width * rows.height, 1, rows.depth};
  return {rows.width * rows.height * rows.depth, 1, 1};
}

template <class Row>
void for_each_row(const Rows& rows, Row row) {
  for (uint64_t slice = 0; slice < rows.depth; ++slice) {
    for (uint64_t line = 0; line < rows.height; ++line) row(line, slice);
  }
}

std::optional<std::string> check_rows(const char* what, const CopyEnd& end, const Rows& rows,
                                      const AddressCheck& accessible) {
  for (uint64_t slice = 0; slice < rows.depth; ++slice) {
    for (uint64_t row = 0; row < rows.height; ++row) {
      uint64_t address = row_address(end, row, slice);
      if (accessible(address, rows.width)) continue;
      return stringf("%s of %llu bytes at 0x%llx: not all of it is mapped", what,
                     static_cast<unsigned long long>(rows.width), static_cast<unsigned long long>(address));
    }
  }
  return std::nullopt;
}

// What comes from the host was just written there and lies in the cache; what goes there is soon read. Only on the
// device may the ends overlap.
void copy_row(std::byte* to, const std::byte* from, uint64_t width, CopyDirection direction) {
  if (direction == CopyDirection::kToDevice) {
    stream_copy(to, from, width);
  } else {
    std::memmove(to, from, width);
  }
}

void fill_row(std::byte* to, uint64_t width, uint32_t value, uint32_t element_bytes) {
  if (element_bytes == 1) {
    std::memset(to, static_cast<int>(value & 0xff), width);
    return;
  }
  for (uint64_t at = 0; at + element_bytes <= width; at += element_bytes) std::memcpy(to + at, &value, element_bytes);
}

}  // namespace

uint64_t payload(const CopyShape& shape) {
  return shape.width * shape.height * shape.depth;
}

uint64_t payload(const FillShape& shape) {
  return shape.width * shape.height * shape.depth;
}

void visit_rows(const CopyEnd& to, uint64_t width, uint64_t height, uint64_t depth,
                const std::function<void(uint64_t, uint64_t)>& visit) {
  const Rows rows = merge({width, height, depth}, to);
  for_each_row(rows, [&](uint64_t line, uint64_t slice) { visit(row_address(to, line, slice), rows.width); });
}

std::optional<std::string> run_copy(const CopyShape& shape, CopyDirection direction, const AddressCheck& accessible) {
  if (payload(shape) == 0) return std::nullopt;
  Rows rows = merge({shape.width, shape.height, shape.depth}, shape.to, shape.from);
  if (auto problem = check_rows("copy from", shape.from, rows, accessible)) return problem;
  if (auto problem = check_rows("copy to", shape.to, rows, accessible)) return problem;
  for_each_row(rows, [&](uint64_t line, uint64_t slice) {
    copy_row(pointer(row_address(shape.to, line, slice)), pointer(row_address(shape.from, line, slice)), rows.width,
             direction);
  });
  return std::nullopt;
}

std::optional<std::string> run_fill(const FillShape& shape, const AddressCheck& accessible) {
  if (payload(shape) == 0) return std::nullopt;
  Rows rows = merge({shape.width, shape.height, shape.depth}, shape.to);
  if (auto problem = check_rows("fill", shape.to, rows, accessible)) return problem;
  for_each_row(rows, [&](uint64_t line, uint64_t slice) {
    fill_row(pointer(row_address(shape.to, line, slice)), rows.width, shape.value, shape.element_bytes);
  });
  return std::nullopt;
}

}  // namespace heddle::software
