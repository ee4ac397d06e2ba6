#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/fd.h"
#include "core/ids.h"
#include "core/units.h"

namespace heddle::daemon {

// Swap space that nobody uses any more, pinned, and mapped in a GPU's keeper, which waits to be used again. Plain
// state: what it gives up is the caller's to unmap.
class PinnedPool {
 public:
  // Each piece is a descriptor of this process, so there are not more: one more gives up the oldest.
  static constexpr size_t kMostPieces = 512;

  struct Piece {
    Fd memory;
    Bytes size;
    DeviceId device;       // whose keeper made it
    uint64_t mapping = 0;  // the keeper's number for it
    TimePoint since{};     // nobody uses it
  };
  using Pieces = std::list<Piece>;

  // The newest from here on. Times never go back.
  Pieces put(Piece piece);
  // The newest of exactly this size that this GPU's keeper made.
  std::optional<Piece> take(DeviceId device, Bytes size);
  // Gives up the oldest until no more than this is left.
  Pieces shrink_to(Bytes most);
  // Gives up what nobody has used since then.
  Pieces give_up_unused(TimePoint since);

  Bytes bytes() const { return bytes_; }
  // When the oldest came; none: it is empty.
  std::optional<TimePoint> oldest() const;

 private:
  void move_oldest(Pieces& to);

  Pieces pieces_;  // oldest first
  Bytes bytes_;
};

}  // namespace heddle::daemon
