#pragma once

#include <array>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "device/software/model/copy_engines.h"
#include "device/software/model/pace.h"
#include "device/software/operation.h"

// Keeps copies, fills and library calls to the pace of the device. Plain state; its owner locks.
//
// Copies between host and device occupy an engine each way, piece by piece. Copies within the device and fills take the
// time of the bytes that they read and write at the full memory bandwidth, and occupy nothing; copies within the host
// are not the device's. A library call takes the longer of its bytes at the full bandwidth and its arithmetic at the
// full issue rate, as if it had the device for itself, and occupies nothing either. The bytes are moved for real at
// once; the operation ends when its time is over, or when the host was later than that, with the difference as overrun.
namespace heddle::software {

class CopyPacer {
 public:
  explicit CopyPacer(const Pace& pace) : pace_(pace) {}

  struct Ended {
    Operation* operation = nullptr;
    TimePoint at{};
  };

  // The operation is a copy, a fill or a library call, ready to run. False if it has no pace to keep.
  bool start(Operation& operation);
  // The bytes have been moved.
  void moved(Operation& operation, TimePoint at);
  // From now on nothing is waited for but the moving.
  void hurry() { hurry_ = true; }

  // Does what is due.
  void step(BoardLock& lock, TimePoint now, std::vector<Ended>& out);
  // Forgets everything. Returns the operations whose bytes have been moved; they end now.
  std::vector<Operation*> abandon();
  std::optional<TimePoint> next() const;

 private:
  struct Transfer {
    Operation* operation = nullptr;
    uint64_t left = 0;              // bytes that have not been on the engine
    TimePoint ready{};              // for the next piece
    std::optional<Interval> piece;  // the one on the engine, or in line for it
    uint64_t piece_bytes = 0;
  };
  struct Progress {
    std::optional<TimePoint> timed;  // when its time is over; set once that is known
    std::optional<TimePoint> moved;
  };

  void next_piece(BoardLock& lock, uint32_t engine, Transfer& transfer, TimePoint now);
  void step_engine(BoardLock& lock, uint32_t engine, TimePoint now);

  const Pace pace_;
  std::array<std::deque<Transfer>, kCopyEngines> engines_;
  std::unordered_map<Operation*, Progress> progress_;
  bool hurry_ = false;
};

}  // namespace heddle::software
