#pragma once

#include <list>
#include <optional>

#include "core/fd.h"
#include "core/units.h"

namespace heddle::keeper {

// Memory that came back and waits to be served again. Plain state: whoever has it clears what is not cleared.
class SegmentPool {
 public:
  // Each piece is a descriptor of this process, so there are not more: one more lets the oldest go.
  static constexpr size_t kMostPieces = 512;

  struct Piece {
    Fd memory;
    Bytes size;
    bool cleared = false;
  };

  // The newest from here on.
  void put(Piece piece);
  // The newest of exactly this size, of the cleared ones where there are any.
  std::optional<Piece> take(Bytes size);
  // The oldest that is not cleared.
  std::optional<Piece> take_uncleared();
  // Lets the oldest go until it was this much, or all; says how much it was.
  Bytes release(Bytes wanted);

  bool has_uncleared() const { return uncleared_ > 0; }
  Bytes bytes() const { return bytes_; }

 private:
  using Pieces = std::list<Piece>;
  Piece take_out(Pieces::iterator piece);

  Pieces pieces_;  // oldest first
  size_t uncleared_ = 0;
  Bytes bytes_;
};

}  // namespace heddle::keeper
