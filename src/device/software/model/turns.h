#pragma once

#include <optional>

#include "device/software/model/board.h"

// Time slicing: the whole device belongs to one client at a time, for a slice while others want it too. Clients take
// turns in the order in which they asked. A client that loses its turn stops where it is; its blocks go on at its next
// turn. That is kept in the client's device time, which passes only while the device is its own. Turns begin and end
// when they should have, not when some process came around to notice.
namespace heddle::software {

// All functions are to be called with the board locked, as the client that holds the lock.
class Turns {
 public:
  Turns(BoardLock& lock, Duration slice) : lock_(lock), slice_(slice) {}

  // Asks for the device, if it has not already; it has had a use for it since `since`.
  void want(TimePoint since, TimePoint now);
  // Wants it no more; a turn ends at `when`.
  void give_up(TimePoint when, TimePoint now);
  // Hands the device on where slices have ended by `now`.
  void rotate(TimePoint now);

  bool mine() const { return lock_.header().turn_holder == lock_.self() + 1; }
  // The device time of this client at `now`.
  TimePoint device_time(TimePoint now) const;
  // When somebody should rotate() next: the end of the slice, if anybody waits for it.
  std::optional<TimePoint> next_rotation() const;

 private:
  std::optional<uint32_t> next_in_line() const;
  void begin(uint32_t client, int64_t at_ns);
  void end(int64_t at_ns);
  void clamp(int64_t now_ns);

  BoardLock& lock_;
  Duration slice_;
};

}  // namespace heddle::software
