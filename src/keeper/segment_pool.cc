#include "keeper/segment_pool.h"

#include <algorithm>
#include <utility>

namespace heddle::keeper {

void SegmentPool::put(Piece piece) {
  if (pieces_.size() == kMostPieces) take_out(pieces_.begin());
  bytes_ += piece.size;
  uncleared_ += piece.cleared ? 0 : 1;
  pieces_.push_back(std::move(piece));
}

std::optional<SegmentPool::Piece> SegmentPool::take(Bytes size) {
  auto best = pieces_.end();
  for (auto each = pieces_.begin(); each != pieces_.end(); ++each) {
    if (each->size == size && (best == pieces_.end() || each->cleared || !best->cleared)) best = each;
  }
  if (best == pieces_.end()) return std::nullopt;
  return take_out(best);
}

std::optional<SegmentPool::Piece> SegmentPool::take_uncleared() {
  const auto found = std::find_if(pieces_.begin(), pieces_.end(), [](const Piece& each) { return !each.cleared; });
  if (found == pieces_.end()) return std::nullopt;
  return take_out(found);
}

Bytes SegmentPool::release(Bytes wanted) {
  Bytes released;
  while (released < wanted && !pieces_.empty()) released += take_out(pieces_.begin()).size;
  return released;
}

SegmentPool::Piece SegmentPool::take_out(Pieces::iterator piece) {
  Piece taken = std::move(*piece);
  pieces_.erase(piece);
  bytes_ -= taken.size;
  uncleared_ -= taken.cleared ? 0 : 1;
  return taken;
}

}  // namespace heddle::keeper
