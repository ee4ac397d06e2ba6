#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/software/model/board.h"

// Dealing out the SMs of a device, first come first served, block by block.
//
// Launches that wait for space stand in line, each with a ticket. Whoever changes something under the lock, by making
// space or by joining the line, also places what can be placed now, for itself or others, and rings those. A launch
// that got a block goes to the end of the line, so that waiting launches take turns. If the first in line fits nowhere,
// later ones may overtake it, but only so many times: then space is kept until it fits, on the SMs that it may have.
//
// A block starts, in the model's time, when there was space for it: at the end of the block that made space, not when
// some process came around to notice; and not before the line went on, where space was kept for a launch ahead of it.
namespace heddle::software {

struct SlotRequest {
  uint64_t launch = 0;
  uint64_t blocks = 0;
  SmShare need;
  TimePoint ready{};
  bool together = false;
};

struct Placement {
  uint32_t slot = 0, sm = 0;
  uint64_t launch = 0;
  TimePoint start{};
};

// All functions are to be called with a board locked, as the client that holds the lock.
class Slots {
 public:
  explicit Slots(BoardLock& lock) : lock_(lock) {}

  // Joins the line. False if this client has kWaitsPerClient launches in it already.
  bool request(const SlotRequest& request);
  // Leaves the line, at `when`; blocks that have been placed stay.
  void withdraw(uint64_t launch, TimePoint when);
  // A block of this client has ended in its slot.
  void release(uint32_t slot, TimePoint when);
  // Places what can be placed; needed only after a sweep().
  // Gives back what clients held that are gone, and places whoever waits: also in what was given back before. A client
  // that joins the board, or leaves it, gives back and places nobody.
  void sweep(TimePoint now);
  // Whether this client has a launch in line.
  bool waiting() const;

  // Blocks of this client that have been placed since the last call.
  std::vector<Placement> collect();

 private:
  struct Waiter {
    uint32_t client = 0;
    WaitRecord* record = nullptr;
  };
  struct SmRange {
    uint32_t first = 0, end = 0;
  };

  void place_waiting(SmRange sms);
  SmRange may_have(const Waiter& waiter, SmRange sms) const;
  std::vector<Waiter> line();
  bool place(const Waiter& waiter, SmRange sms);
  bool place_all(const Waiter& waiter);
  std::optional<uint32_t> best_sm(const SmShare& need, SmRange sms);
  bool put(const Waiter& waiter, uint32_t sm);
  SmShare free_share(uint32_t sm);
  SmRange all() const { return {0, static_cast<uint32_t>(lock_.sms().size())}; }

  BoardLock& lock_;
};

}  // namespace heddle::software
