#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "device/cuda/operation.h"

// The streams of a context, as plain state without a driver call; its owner locks.
//
// All of them are non-blocking to the driver: the order of CUDA's legacy default stream (stream 0) is kept by events
// between streams, which the engine sets where this table says so. A hold is kept here alone: what stands behind it, by
// stream order, by the legacy stream's order or by a wait, is not given to the driver before the release. So nothing
// on the device ever waits for the program, and a fault is reported at once.
namespace heddle::cuda {

// A driver's event that was recorded behind an operation.
struct Fence {
  CUevent event = nullptr;
  uint64_t sequence = 0;  // of the last operation that it covers
  bool urgent = false;    // somebody waits for it, or may, and the device does not report it
};

struct Stream {
  device::StreamIndex index = 0;
  CUstream handle = nullptr;
  bool non_blocking = false;
  bool destroyed = false;
  std::deque<Operation> pending;  // the driver has them, in order
  std::deque<Deferred> deferred;  // it has not, in order
  std::deque<Fence> fences;       // outstanding, in order
  uint64_t tail = 0;              // sequence of what was issued last
  uint64_t unfenced = 0;          // operations behind the last fence
  bool flushed = false;           // these are wanted too, once the fences before them have been passed
  uint64_t legacy_seen = 0;       // up to which operation of the legacy stream it waits
  uint64_t followed = 0;          // up to which operation of this one the legacy stream waits
  bool refused = false;           // an operation of it never reached the driver, and is a fault once its turn comes
  bool held = false;
  device::Tag hold = 0;
  uint64_t hold_sequence = 0;
  TimePoint last_end{};

  bool legacy() const { return index == 0; }
  bool idle() const { return pending.empty() && deferred.empty(); }
};

class StreamTable {
 public:
  StreamTable();

  Status check_new(device::StreamIndex index) const;
  void create(device::StreamIndex index, bool non_blocking, CUstream handle);
  // The stream still runs what it was given; it is swept out afterwards.
  Status destroy(device::StreamIndex index);
  Result<Stream*> find(device::StreamIndex index);
  Stream& legacy() { return *all_.front(); }
  const std::vector<std::unique_ptr<Stream>>& all() const { return all_; }
  // Takes out streams that were destroyed and have nothing left, and returns the driver's handles of them.
  std::vector<CUstream> sweep();

  // Whether the operation must wait for a release before the driver may have it.
  bool blocked(const Stream& stream, uint64_t sequence, const Work& work) const;
  // Whether everything is done that an operation handed over now would follow.
  bool has_turn(const Stream& stream) const;
  // The stream and the operation with that tag that the driver has; null where there is none (any more).
  std::pair<Stream*, const Operation*> issued(device::Tag tag) const;
  // The stream that is held at this tag; null where there is none.
  Stream* held_at(device::Tag tag) const;

  void hold(Stream& stream, const Operation& operation);
  void let_go(Stream& stream);
  void defer(Stream& stream, Deferred deferred);
  // The next operation that is not blocked any more, taken out of its stream.
  bool take_unblocked(Stream*& stream, Deferred& deferred);

 private:
  bool behind_hold(const Stream& stream, uint64_t sequence) const;
  bool is_deferred(device::Tag tag) const;

  std::vector<std::unique_ptr<Stream>> all_;  // the legacy stream first
  std::unordered_map<device::StreamIndex, Stream*> by_index_;
  uint64_t waiting_ = 0;  // streams held, and operations deferred: mostly none
};

}  // namespace heddle::cuda
