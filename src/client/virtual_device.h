#pragma once

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "client/answer.h"
#include "client/arena.h"
#include "client/handle_table.h"
#include "client/host_calls.h"
#include "client/idle_memory.h"
#include "client/lazy_task.h"
#include "client/promises.h"
#include "client/ring_port.h"

// One device as the program sees it: its ring to a worker, its memory, streams and events. Or a lane of one (apart.h).
//
// Thread safety: the ring's lock guards everything but the waiting (ring_port.h). A device's lock is taken before its
// lanes'.
namespace heddle::client {

struct StreamState {
  uint64_t last = 0;  // sequence of its last record
  bool non_blocking = false;
  int priority = 0;
  uint64_t joined = 0;  // how far it waits for the lanes already: the sum of their last records' sequences
};

// The end of what a stream was given.
struct Mark {
  uint32_t stream = 0;
  uint64_t sequence = 0;
  bool operator==(const Mark&) const = default;
};

struct EventState {
  uint64_t last = 0;  // sequence of the kEventRecord; 0: never recorded
  unsigned flags = 0;
};

// A texture or surface object, as the program described it.
struct TextureState {
  cudaResourceDesc resource{};
  cudaTextureDesc sampling{};
  bool surface = false;
  uint64_t gone = 0;  // sequence of the record that took away what was in the slot before
};

class VirtualDevice : private TaskVoice {
 public:
  using Lock = RingPort::Lock;
  enum class Begin { kNo, kYes };

  // `memory` is the ring; [base, base + bytes) is this device's part of the window. A lane has a `home`.
  VirtualDevice(Session& session, uint32_t index, protocol::RingMemory memory, uint64_t base, uint64_t bytes,
                VirtualDevice* home = nullptr);

  RingPort& ring() { return ring_; }
  const RingPort& ring() const { return ring_; }
  [[nodiscard]] Lock lock() { return ring_.lock(); }
  Session& session() const { return ring_.session(); }
  uint32_t index() const { return ring_.index(); }
  const DeviceModel& model() const { return session().welcome().devices[home().index()]; }

  // --- lanes (lanes.cc) ---
  bool is_lane() const { return home_ != nullptr; }
  // The device that the program means.
  VirtualDevice& home() { return home_ ? *home_ : *this; }
  const VirtualDevice& home() const { return home_ ? *home_ : *this; }
  bool has_lanes() const { return lanes_.load(std::memory_order_acquire) != nullptr; }
  template <class Body>
  void for_each_lane(Body&& body) const {
    for (VirtualDevice* lane = lanes_.load(std::memory_order_acquire); lane; lane = lane->next_lane_) body(*lane);
  }
  // Of the home, once for each lane; the caller sees to it that only one thread does.
  void add_lane(VirtualDevice* lane);
  // Begins the lane's task beside the home's, which begins with it where it has not; false: heddled has no room for
  // both at once, and nothing has happened.
  Answer<bool> begin_apart(VirtualDevice& lane);
  // Nothing is left of the task before.
  bool is_empty();
  // Around an operation of a task apart at home.
  void begin_inside();
  void end_inside();
  // What of the home's blocking streams is not done yet, but for the operations of tasks apart.
  std::vector<Mark> outside_work();
  // Whether a lane must wait for that; not where it does already.
  bool must_follow(const std::vector<Mark>& marks);
  bool reached(const std::vector<Mark>& marks) const;
  // Waits for the lanes, too.
  Done synchronize_with_lanes();

  // --- memory (device_memory.cc) ---
  Answer<uint64_t> allocate(uint64_t bytes);
  // Memory that the worker takes for itself on the program's account: `bytes`, a multiple of kSegmentBytes, are counted
  // until release(), and nothing lies at the address.
  Answer<uint64_t> allocate_room(uint64_t bytes);
  // Waits for all work first, as cudaFree does. cudaErrorInvalidValue for what is no buffer's start.
  Done release(uint64_t address);
  Done release_all();
  // The same, and the variables of the program's modules begin anew, as cudaDeviceReset has it.
  Done reset();
  // The buffer goes back behind the work that was called so far, without waiting.
  Done release_behind(uint64_t address);
  // Addresses that get memory later, maybe more than once; release_behind() takes it away again. back() waits until
  // nothing that used the memory before can still run.
  Answer<uint64_t> reserve_addresses(uint64_t bytes);
  Done back(uint64_t address, uint64_t bytes);
  void unreserve(uint64_t address);
  // What declared tasks promise: allocate() of exactly that size takes it. What has no room is not promised; where the
  // policy binds at cudaMalloc nothing is.
  void open_promises(uint64_t task);
  void promise(uint64_t task, uint64_t bytes);
  // Undoes both, as if they had not been.
  void take_back_promises(uint64_t task);
  // Gives back what was not taken. nullopt: no such task here.
  std::optional<TaskAccount> close_promises(uint64_t task);
  // What is promised still goes back, and the task stays open.
  void give_back_promises(uint64_t task);
  // release_behind(), after which the program's own free of it finds nothing to do.
  void release_early(uint64_t address);
  bool owns(uint64_t address) const { return arena_.owns(address); }
  bool covers(uint64_t address, uint64_t bytes);
  bool task_begun();
  std::optional<Buffer> buffer_at(uint64_t address);
  uint64_t live_bytes();
  uint64_t lanes_bytes() const;

  // --- records: under the lock ---
  // The worker waits for the segment before it goes on; takes the lock itself. A worker that comes later has it.
  Done need_segment(uint64_t number);
  // Makes the ring ready for a record: failures show, new segments are declared, the task begins where asked.
  Done prepare(Begin begin);
  // Room for a record; to be filled and published at once.
  template <class Record>
  Answer<Record*> reserve(protocol::RecordType type, uint32_t stream, size_t trailing_bytes = 0) {
    resume();
    if (auto* record = ring_.reserve<Record>(type, stream, trailing_bytes)) [[likely]]
      return record;
    HEDDLE_ANSWER(wait_for_room([&] { return ring_.reserve<Record>(type, stream, trailing_bytes) != nullptr; }));
    return ring_.reserve<Record>(type, stream, trailing_bytes);
  }
  uint64_t publish(uint32_t stream) {
    const uint64_t sequence = ring_.publish_work();
    streams.at(stream).last = sequence;
    if (insiders_ != 0) [[unlikely]]
      published_meanwhile(stream, sequence);
    return sequence;
  }
  // A record that is a header with `a` and `b` only.
  Answer<uint64_t> append_plain(protocol::RecordType type, uint32_t stream, uint64_t a = 0, uint64_t b = 0);
  LazyTask& task() {
    resume();
    return task_;
  }
  // The worker must keep what it holds: module variables were written, or addresses of it are out.
  void pin_worker() { worker_pinned_ = true; }

  // A payload's place in the bulk area; waits for room, and begins the task for that. A thread that holds payloads may
  // not wait for more, since others may do the same: it asks the ring.
  Answer<uint64_t> reserve_bulk(Lock& lock, uint64_t bytes);

  // --- texture and surface objects (device_textures.cc): takes the lock itself ---
  Answer<uint64_t> open_texture(const Texture& texture, TextureState state);
  // cudaErrorInvalidValue for what is no handle of that kind.
  Done close_texture(uint64_t handle, bool surface);
  Answer<TextureState> texture(uint64_t handle, bool surface);
  Done close_all_textures();

  // --- limits (device_limits.cc): takes the lock itself ---
  // cudaErrorUnsupportedLimit; cudaErrorInvalidValue where it is too much, or too late for heap and printf.
  Done set_limit(cudaLimit limit, size_t value);
  Answer<size_t> limit(cudaLimit limit);
  bool has_default_limits();
  // Under the lock: as cudaDeviceReset has it.
  Done reset_limits();
  // Under the lock: a kernel of a module that declares them is launched.
  void uses(bool malloc, bool printf) {
    uses_malloc_ |= malloc;
    uses_printf_ |= printf;
  }

  // --- waiting: without the lock ---
  // Begins the task if work waits for it, waits for all work of the stream or device, prints what kernels printed,
  // and tells what went wrong.
  Done synchronize_stream(uint32_t stream, uint64_t sequence);
  Done synchronize();
  // Lets work run that the program asks about.
  Done start_pending();

  // What went wrong on the device, sticky.
  Done failure() const { return ring_.failure(); }

  // --- handles ---
  HandleTable<StreamState> streams{kStreamTag, protocol::kMaxStreams};
  HandleTable<EventState> events{kEventTag, protocol::kMaxEvents};
  HandleTable<TextureState> textures{kTextureTag, protocol::kMaxTextures};
  Answer<uint32_t> open_stream(bool non_blocking, int priority);
  HostCalls host_calls;

 private:
  // What becomes of a buffer's memory depends on what may still touch it.
  enum class Freed {
    kWaited,   // all work that was called before is done
    kBehind,   // the work that was called so far may
    kEarly,    // the same, and the program has not freed it itself yet
    kUntaken,  // promised, and the program never had its address
  };

  // TaskVoice
  Done await_end() override;
  Answer<uint64_t> declare(const Segment& segment, bool answer) override;
  Done begin(uint64_t serial, const protocol::ComputeNeed& need) override;
  Done grow(const protocol::ComputeNeed& need) override { return session().grow_task(need); }
  Answer<uint64_t> append(protocol::RecordType type, uint64_t a) override { return append(type, a, 0); }
  // A record that is no work of a stream.
  Answer<uint64_t> append(protocol::RecordType type, uint64_t a, uint64_t b);
  Done append_limit(protocol::LimitKind kind, uint64_t bytes);
  void withdrawn(const Segment& segment) override { session().forget_segment(segment.number); }
  void retire(Segment* segment, uint64_t sequence) override;

  // What counts against the device's budget beside this ring's memory.
  uint64_t bytes_beside() const;
  // A record was published while a thread is in an operation of a task apart.
  void published_meanwhile(uint32_t stream, uint64_t sequence);
  void look_outside();
  void count_bytes() {
    most_held_ = std::max(most_held_, used_bytes());
    held_bytes_.store(used_bytes(), std::memory_order_relaxed);
  }

  // Under the lock: the slot of a live object; its end.
  Answer<uint32_t> texture_slot(uint64_t handle, bool surface);
  Done take_away_texture(uint32_t slot);
  // Under the lock: a new buffer; the end of one.
  Answer<uint64_t> place(uint64_t bytes);
  uint64_t would_add(uint64_t bytes);
  bool within_budget(uint64_t added);  // with so many segment bytes more
  Done settle_frees(Lock& lock, uint64_t added);
  Done check_budget(uint64_t bytes, uint64_t added);
  Done make_room(uint64_t bytes, uint64_t added);  // what is idle makes way for it
  Done placed(const Arena::Place& place);
  Done give_back(uint64_t address, Freed how);
  bool binds_now() const { return session().welcome().binds_at_malloc != 0; }

  // Under the lock: memory that stays though it is freed (device_idle.cc).
  bool may_stay(const Segment& segment, Freed how) const;
  bool stays(Segment* segment, Freed how);
  Done all_freed();
  // Before a record, and before anything that asks whether the task has begun: one that rests goes on, or has ended.
  void resume() {
    if (task_.resting()) [[unlikely]]
      resume_resting();
  }
  void resume_resting();
  Segment* take_idle(uint64_t bytes);
  Done shrink_idle(uint64_t added);
  Done return_idle(uint64_t most);
  void retire_lost();
  uint64_t used_bytes() const { return arena_.segment_bytes() - idle_.bytes(); }

  template <class Room>
  Done wait_for_room(Room&& room);

  RingPort ring_;
  VirtualDevice* const home_;                    // of a lane
  VirtualDevice* next_lane_ = nullptr;           // of a lane; fixed before it is in the home's list
  std::atomic<VirtualDevice*> lanes_{nullptr};   // of a home, the newest first; never taken out
  std::atomic<uint64_t> held_bytes_{0};          // the arena's, for the others to see
  uint64_t inside_last_ = 0, outside_last_ = 0;  // of the legacy default stream: by tasks apart, by all others
  uint32_t insiders_ = 0;                        // threads in an operation of a task apart
  std::vector<Mark> followed_;                   // of a lane: what it waits for already
  Arena arena_;
  IdleMemory idle_;
  uint64_t most_held_ = 0;  // by the program at once; more never stays idle
  LazyTask task_;
  Promises promises_;
  std::set<uint64_t> freed_early_;  // until the program frees them itself
  uint64_t last_end_ = 0;           // sequence at the end of the last task: what came before needs no new task
  bool worker_pinned_ = false;
  bool uses_malloc_ = false, uses_printf_ = false;
  // By cudaLimit: stack, printf, heap, and those that have no effect here; a GPU's defaults.
  static constexpr std::array<size_t, 7> kDefaultLimits{1024, protocol::kDefaultPrintBytes, 8 * kMiB, 2, 2048, 64, 0};
  std::array<size_t, 7> limits_ = kDefaultLimits;
};

// Only the wait for room calls this out of line: it begins the task, without which no room would ever come.
template <class Room>
Done VirtualDevice::wait_for_room(Room&& room) {
  HEDDLE_ANSWER(task_.begin());
  return ring_.wait_until(room);
}

}  // namespace heddle::client
