#pragma once

#include "device/software/model/board.h"

// The copy engines, one for each direction over the bus, shared by all clients. An engine works off pieces of copies in
// the order in which they were reserved. A client reserves one piece at a time, so that copies of several clients share
// an engine, and a client that dies leaves no more than a piece behind.
namespace heddle::software {

// A piece never takes longer.
inline constexpr Duration kLongestPiece = std::chrono::milliseconds(2);

struct Interval {
  TimePoint start{}, end{};
};

// When a piece of a copy is on the engine that was ready at `ready` and takes `duration`. With the board locked.
Interval reserve(BoardLock& lock, uint32_t engine, TimePoint ready, Duration duration, TimePoint now);

}  // namespace heddle::software
