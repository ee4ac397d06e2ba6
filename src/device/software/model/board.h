#pragma once

#include <bitset>
#include <optional>
#include <span>
#include <vector>

#include "core/fd.h"
#include "core/units.h"
#include "device/software/model/board_layout.h"

namespace heddle::software {

class BoardLock;

// One context's hold on the board that it shares with all others of the device.
//
// A process may be killed at any instant, also inside the lock. The lock is a robust mutex: whoever takes it next works
// the sums out anew from the slots. Each client holds a second robust mutex for life; sweep() finds the clients whose
// holder is gone and gives back what they had.
//
// Its owner calls detach() before it destroys an attached board: the kernel finds the second mutex only while it is
// mapped.
//
// Thread safety: attach(), detach() and destruction on one thread, which must live as long as the client is attached;
// ring(), bell() and sleep() from any thread; the rest with the caller's own lock.
class Board {
 public:
  static Bytes bytes(const DeviceModel& model);
  // Maps the memory and, if it is fresh, makes it a board. kInvalidArgument if it is the board of another model.
  static Result<Board> open(const DeviceModel& model, const Fd& memory);
  Board(Board&&) = default;

  // Becomes a client, whose blocks may be on the first `sms` SMs; 0: on all. kLimitExceeded if kMostClients are
  // attached.
  Status attach(uint32_t sms = 0);
  // Gives everything back.
  void detach();
  uint32_t self() const { return self_; }

  // Waits for the lock; kTimeout if nobody lets go of it for long.
  Result<BoardLock> lock();

  // Doorbells. bell() is read before looking for work; sleep() returns at once if it has been rung since, at the latest
  // at `until`.
  uint32_t bell() const;
  void ring(uint32_t client);
  void sleep(uint32_t seen, TimePoint until);

 private:
  friend class BoardLock;
  Board(const DeviceModel& model, Mapping mapping);
  Status prepare(const Fd& memory);
  void make_fresh();
  void repair();

  BoardHeader& header() const { return *static_cast<BoardHeader*>(mapping_.data()); }

  Mapping mapping_;
  SmShare whole_sm_;
  uint32_t sms_ = 0, slots_per_sm_ = 0;
  std::span<ClientRecord> clients_;
  std::span<SmRecord> sm_records_;
  std::span<SlotRecord> slots_;
  uint32_t self_ = kMostClients;
};

// The board while it is locked. Clients that were marked are rung after the lock has been let go.
class BoardLock {
 public:
  BoardLock(BoardLock&& other) noexcept;
  BoardLock& operator=(BoardLock&&) = delete;
  ~BoardLock();

  BoardHeader& header() { return board_->header(); }
  std::span<ClientRecord> clients() { return board_->clients_; }
  std::span<SmRecord> sms() { return board_->sm_records_; }
  std::span<SlotRecord> slots() { return board_->slots_; }  // of all SMs
  std::span<SlotRecord> slots_of(uint32_t sm);
  const SmShare& whole_sm() const { return board_->whole_sm_; }
  uint32_t self() const { return board_->self_; }
  ClientRecord& mine() { return board_->clients_[board_->self_]; }

  void ring_later(uint32_t client) { to_ring_.set(client); }
  uint64_t new_ticket() { return ++header().next_ticket; }
  // Gives back what clients held that are gone. Returns whether there were any.
  bool sweep(TimePoint now);
  // Frees a slot; a block ended in it at `when`.
  void free_slot(uint32_t slot, TimePoint when);
  // Takes a launch out of the line; if it held the line up, that goes on.
  void leave_line(WaitRecord& wait, TimePoint when);

 private:
  friend class Board;
  explicit BoardLock(Board& board) : board_(&board) {}
  void reclaim(uint32_t client, TimePoint now);

  Board* board_;
  std::bitset<kMostClients> to_ring_;
};

}  // namespace heddle::software
