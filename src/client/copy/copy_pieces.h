#pragma once

#include "client/copy/places.h"
#include "client/stream_ref.h"

// Staged copies: the bytes pass through the ring's bulk area, in pieces that fit a block of it.
namespace heddle::client {

// A position in a copy: slice, row, byte of the row.
struct CopyOffset {
  uint64_t z = 0, y = 0, x = 0;
};
// Rows [at.y, at.y + rows) of slice at.z, each from at.x on, `width` bytes.
struct CopyPiece {
  CopyOffset at;
  uint64_t width = 0, rows = 0;
  uint64_t bytes() const { return width * rows; }
};

// Cuts a copy into pieces of at most `limit` bytes, in order: whole rows where they fit, parts of a row where not.
// Rows that lie end to end at both ends count as one long row.
class CopyPieces {
 public:
  CopyPieces(const CopyShape& shape, const CopyPlace& to, const CopyPlace& from, uint64_t limit);
  std::optional<CopyPiece> next();

 private:
  CopyShape shape_;
  uint64_t limit_;
  CopyOffset at_;
};

char* host_pointer(const CopyPlace& place, const CopyOffset& at);
// That end of a record, from `at` on.
protocol::CopyEnd end_at(const CopyPlace& place, const CopyOffset& at);

// Both ends are host memory of this process.
void copy_rows_on_host(const CopyPlace& to, const CopyPlace& from, const CopyShape& shape);

// From pageable memory; returns when everything lies in the bulk area.
Done copy_in(const StreamRef& stream, const CopyPlace& to, const CopyPlace& from, const CopyShape& shape);
// To pageable memory; returns when everything lies there.
Done copy_out(const StreamRef& stream, const CopyPlace& to, const CopyPlace& from, const CopyShape& shape);

}  // namespace heddle::client
