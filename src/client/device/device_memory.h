#pragma once

#include <set>

#include "client/device/device_task.h"
#include "client/device/driver_charges.h"
#include "client/device/promises.h"

// The program's memory on one device or side device: its buffers, what was promised for tasks, what was freed and stays
// where it is until somebody waits (idle_memory.h). What it costs is counted in segments, as heddled's ledger does.
//
// Thread safety: any thread; the functions take the ring's lock themselves. Those that wait let it go meanwhile.
namespace heddle::client {

class DeviceMemory {
 public:
  using Lock = RingPort::Lock;

  DeviceMemory(RingPort& ring, DeviceSegments& segments, DeviceTask& task)
      : ring_(ring), segments_(segments), task_(task), promises_(ring.header().task_totals), charges_(ring.model()) {}

  // --- buffers ---
  Answer<uint64_t> allocate(uint64_t bytes);
  // Memory that the worker takes for itself on the program's account: `bytes`, a multiple of kSegmentBytes, are counted
  // until release(), and nothing lies at the address.
  Answer<uint64_t> allocate_room(uint64_t bytes);
  // `bytes`, a multiple of kSegmentBytes, in a segment of their own, however many the program has.
  Answer<uint64_t> allocate_alone(uint64_t bytes);
  // Waits for all work first, as cudaFree does. cudaErrorInvalidValue for what is no buffer's start.
  Done release(uint64_t address);
  Done release_all();
  // The buffer goes back behind the work that was called so far, without waiting.
  Done release_behind(uint64_t address);
  // release_behind(), after which the program's own free of it finds nothing to do.
  void release_early(uint64_t address);
  bool covers(uint64_t address, uint64_t bytes);
  std::optional<Buffer> buffer_at(uint64_t address);

  // --- addresses that get memory later, maybe more than once ---
  Answer<uint64_t> reserve_addresses(uint64_t bytes);
  // Waits until nothing that used the memory before can still run. release_behind() takes it away again.
  Done back(uint64_t address, uint64_t bytes);
  void unreserve(uint64_t address);

  // --- what declared tasks promise: allocate() of exactly that size takes it ---
  void open_promises(uint64_t task);
  // What has no space is not promised; where the policy grants at cudaMalloc nothing is.
  void promise(uint64_t task, uint64_t bytes);
  // Undoes both, as if they had not been.
  void take_back_promises(uint64_t task);
  // Gives back what was not taken. nullopt: no such task here.
  std::optional<TaskAccount> close_promises(uint64_t task);
  // What is promised still goes back, and the task stays open.
  void give_back_promises(uint64_t task);

  // --- what the driver takes (driver_charges.h) ---
  const DriverCharges& charges() const { return charges_; }
  // Before the call that makes the driver take it: `part` comes to `bytes` from now on. When the program has freed all
  // its memory nothing is charged, and with the next launch all of it again. `what` names it to the program.
  // cudaErrorMemoryAllocation where its budget does not allow it.
  Done charge_driver(DriverCharges::Part part, uint32_t id, uint64_t bytes, const char* what);

  // --- what there is ---
  uint64_t used_bytes();
  // Of the others that share the device's budget.
  uint64_t bytes_beside();
  // The program's.
  size_t buffer_count();
  // No buffer, and nothing is left of the task before.
  bool is_empty();

  // --- under the lock ---
  // What is idle goes back, but for `most` bytes.
  Done return_idle(uint64_t most);

 private:
  // What becomes of a buffer's memory depends on what may still touch it.
  enum class Freed {
    kWaited,   // all work that was called before is done
    kBehind,   // the work that was called so far may
    kEarly,    // the same, and the program has not freed it itself yet
    kUntaken,  // promised, and the program never had its address
  };

  // All under the lock. A new buffer:
  Answer<uint64_t> place(uint64_t bytes);
  Answer<uint64_t> place_alone(Lock& lock, uint64_t bytes, protocol::SegmentKind kind);
  uint64_t would_add(uint64_t bytes);
  Done finish_frees(Lock& lock, uint64_t added);
  Done check_budget(uint64_t bytes, uint64_t added);
  Done make_space(uint64_t bytes, uint64_t added);  // what is idle makes way for it
  Done make_way(uint64_t added);
  Done placed(const Arena::Place& place);
  bool grants_now() const { return ring_.session().welcome().grants_at_malloc != 0; }
  // The end of one:
  Done give_back(uint64_t address, Freed how);
  bool has_buffers() const { return segments_.arena().buffer_count() > charges_.segments(); }
  Done all_freed();

  // Memory that stays though it is freed (device_idle.cc).
  bool may_stay(const Segment& segment, Freed how);
  bool stays(Segment* segment, Freed how);
  Segment* take_idle(uint64_t bytes);
  Done shrink_idle(uint64_t added);

  RingPort& ring_;
  DeviceSegments& segments_;
  DeviceTask& task_;
  Promises promises_;
  DriverCharges charges_;
  uint64_t freed_behind_ = 0;       // the last record that may touch what was freed
  std::set<uint64_t> freed_early_;  // until the program frees them itself
};

}  // namespace heddle::client
