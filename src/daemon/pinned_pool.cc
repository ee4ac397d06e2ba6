#include "daemon/pinned_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace heddle::daemon {

PinnedPool::Pieces PinnedPool::put(Piece piece) {
  Pieces given_up;
  if (pieces_.size() == kMostPieces) move_oldest(given_up);
  bytes_ += piece.size;
  pieces_.push_back(std::move(piece));
  return given_up;
}

std::optional<PinnedPool::Piece> PinnedPool::take(DeviceId device, Bytes size) {
  const auto newest = std::find_if(pieces_.rbegin(), pieces_.rend(),
                                   [&](const Piece& each) { return each.device == device && each.size == size; });
  if (newest == pieces_.rend()) return std::nullopt;
  Piece taken = std::move(*newest);
  pieces_.erase(std::next(newest).base());
  bytes_ -= size;
  return taken;
}

PinnedPool::Pieces PinnedPool::shrink_to(Bytes most) {
  Pieces given_up;
  while (bytes_ > most) move_oldest(given_up);
  return given_up;
}

PinnedPool::Pieces PinnedPool::give_up_unused(TimePoint since) {
  Pieces given_up;
  while (!pieces_.empty() && pieces_.front().since <= since) move_oldest(given_up);
  return given_up;
}

std::optional<TimePoint> PinnedPool::oldest() const {
  if (pieces_.empty()) return std::nullopt;
  return pieces_.front().since;
}

void PinnedPool::move_oldest(Pieces& to) {
  bytes_ -= pieces_.front().size;
  to.splice(to.end(), pieces_, pieces_.begin());
}

}  // namespace heddle::daemon
