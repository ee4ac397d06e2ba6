#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "client/answer.h"
#include "client/device/add_only_list.h"
#include "client/device/bulk_area.h"
#include "client/link/session.h"
#include "client/wait_mode.h"
#include "core/clock.h"
#include "protocol/ring_writer.h"

// This process's end of one ring: records and space for them, payloads, how far the worker is, what went wrong there.
//
// Thread safety: one lock for each ring, which lock() takes. It guards the records and the bulk area here, and what the
// other parts of a virtual device (virtual_device.h) keep beside them: whoever appends a record changes that, too. How
// far the worker is, what went wrong and what kernels printed any thread may ask without it. A thread that waits for
// something to complete does not hold it; one that waits for space in the ring does, since nobody else could append
// either, and only the worker (which never waits for the program's threads, but for the host-call thread, which takes
// no lock) makes space.
namespace heddle::client {

class RingPort;

// The rings of one device of the program: its own and its side devices' (stream/apart.h). A failure of one is the
// device's.
class RingGroup {
 public:
  // By one thread at a time.
  void add(const RingPort& ring) { rings_.add(&ring); }
  bool is_single() const { return rings_.size() == 1; }
  // Null where all are well.
  const RingPort* failed() const;

 private:
  AddOnlyList<const RingPort, protocol::kMaxDevices> rings_;
};

class RingPort {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // `index`: of the virtual device. A side device has a `home`, and belongs to its group.
  RingPort(Session& session, uint32_t index, protocol::RingMemory memory, RingPort* home = nullptr);
  RingPort(const RingPort&) = delete;
  RingPort& operator=(const RingPort&) = delete;

  // Called once, when the port will live as long as the process: from now on its failures are the group's.
  void join_group() { group_.add(*this); }

  Session& session() const { return session_; }
  uint32_t index() const { return index_; }
  // Of the device that the program means: another's, for a side device.
  uint32_t home_index() const { return home_index_; }
  bool is_side_device() const { return home_index_ != index_; }
  const DeviceModel& model() const { return session_.welcome().devices[home_index_]; }
  protocol::RingHeader& header() const { return memory_.header(); }
  protocol::StreamSlot& stream_slot(uint32_t stream) const { return memory_.streams()[stream]; }
  protocol::BufferTable buffers() const { return memory_.buffers(session_.window().base); }
  protocol::TextureSlot& texture_slot(uint32_t slot) const { return memory_.textures()[slot]; }

  [[nodiscard]] Lock lock() { return Lock(mutex_); }

  // --- records: under the lock ---
  // Space for a record, to be filled and published at once; nullptr while there is none.
  template <class Record>
  Record* reserve(protocol::RecordType type, uint32_t stream, size_t trailing_bytes = 0) {
    return writer_.reserve<Record>(type, stream, trailing_bytes);
  }
  // Of a record that is no work of a stream.
  uint64_t publish() {
    const uint64_t sequence = writer_.publish();
    // Behind the record: either this sees that the task is away, or heddled sees the record (daemon/ring_words.h).
    if (header().binding.load(std::memory_order_seq_cst) == static_cast<uint32_t>(protocol::Binding::kAway))
        [[unlikely]]
      ask_for_device();
    return sequence;
  }
  uint64_t publish_work(uint32_t stream) {
    const uint64_t sequence = publish();
    if (last_work_.stream != stream) last_work_ = {last_work_.sequence, stream, last_work_.sequence};
    return last_work_.sequence = sequence;
  }
  uint64_t last_sequence() const { return writer_.last_sequence(); }
  // The last record of a stream, and the last one before it that is another stream's: what a program that waits for the
  // device waits for.
  struct LastWork {
    uint64_t sequence = 0;
    uint32_t stream = 0;
    uint64_t elsewhere = 0;
  };
  const LastWork& last_work() const { return last_work_; }

  // --- bulk area: under the lock, but for bulk_at() ---
  // A payload's place; nullopt where there is no space now.
  std::optional<uint64_t> reserve_bulk(uint64_t bytes) { return bulk_.reserve(bytes, committed()); }
  // The same for a caller that can wait: nullopt, too, where the payloads are too far ahead of the worker.
  std::optional<uint64_t> reserve_bulk_paced(uint64_t bytes);
  void release_bulk(uint64_t position, uint64_t sequence);
  char* bulk_at(uint64_t position) const { return memory_.bulk().data() + position; }
  uint64_t bulk_block_bytes() const { return bulk_.block_bytes(); }
  // Changes when there may be more space; without the lock, too.
  struct BulkState {
    uint64_t committed, releases;
    bool operator==(const BulkState&) const = default;
  };
  BulkState bulk_state() const { return {committed(), bulk_releases_.load()}; }

  // --- how far the worker is ---
  uint64_t committed() const { return header().committed.load(std::memory_order_acquire); }
  // Whether the records up to there are done, as the worker says. What is not reached is wanted from then on.
  bool reached(uint64_t sequence) const { return is_behind(header().completed, sequence); }
  bool stream_seen(uint32_t stream, uint64_t sequence) const {
    return is_behind(stream_slot(stream).completed, sequence);
  }
  // Of a record of an event. event_time() is there.
  bool event_seen(uint32_t event, uint64_t sequence) const {
    return is_behind(memory_.events()[event].completed, sequence);
  }
  // The same, or the device itself has said so already, as it does of streams whose work need not be committed first.
  bool reached(const LastWork& last) const {
    return device_reached(last) || is_behind(header().completed, last.sequence, Told::kByDevice);
  }
  bool stream_reached(uint32_t stream, uint64_t sequence) const {
    return device_reached(stream, sequence) || is_behind(stream_slot(stream).completed, sequence, Told::kByDevice);
  }
  bool event_reached(uint32_t event, uint32_t stream, uint64_t sequence) const {
    return device_reached(stream, sequence) || is_behind(memory_.events()[event].completed, sequence, Told::kByDevice);
  }
  bool device_reached(uint32_t stream, uint64_t sequence) const {
    return stream_slot(stream).device_completed.load(std::memory_order_acquire) >= sequence;
  }
  bool device_reached(const LastWork& last) const {
    return device_reached(last.stream, last.sequence) &&
           header().completed.load(std::memory_order_acquire) >= last.elsewhere;
  }
  // The commit of all that is done is wanted, with which nothing of it is ever run again: it makes space in the ring
  // and the bulk area.
  void want_commit() const;
  uint64_t event_time(uint32_t event) const { return memory_.events()[event].time_ns.load(std::memory_order_relaxed); }
  bool is_bound_to(protocol::Binding binding) const {
    return header().binding.load(std::memory_order_acquire) == static_cast<uint32_t>(binding);
  }

  // --- what went wrong ---
  bool is_healthy() const {
    return header().fault.load(std::memory_order_acquire) == 0 && !is_bound_to(protocol::Binding::kFailed);
  }
  // In the group, sticky: reads two words where nothing did.
  Done failure() const {
    if (is_healthy() && group_.is_single()) [[likely]]
      return {};
    return group_failure();
  }

  // --- waiting: without the lock, but for space in the ring ---
  // Waits until `done()`; an error when the session or the device fails first. The thread looks, as `mode` says, and
  // then sleeps. `reported()`: what makes done() true without a bell, because the device itself has said it; it is
  // asked very often, and only while the thread looks.
  template <class IsDone, class IsReported>
  Done wait_until(IsDone&& done, IsReported&& reported, WaitMode mode) const {
    const MonotonicClock clock;
    for (TimePoint looked = clock.now();;) {
      const uint32_t seen = protocol::read_bell(header().to_client);
      if (done()) return {};
      drain_reports();
      HEDDLE_ANSWER(failure());
      wait_once(seen, reported, mode);
      const TimePoint now = clock.now();
      if (now - looked < kLookEvery) continue;  // a system call; bells may ring often
      HEDDLE_ANSWER(session_.look());
      looked = now;
    }
  }
  // For what a bell always says: the worker's own words.
  template <class IsDone>
  Done wait_until(IsDone&& done) const {
    return wait_until(
        done, [] { return false; }, wait_mode().load(std::memory_order_relaxed));
  }

  // What kernels printed, and what is for standard error.
  void drain_prints();
  // What is for standard error alone: the driver's words on a fault are there before the fault is told of.
  void drain_reports() const;

 private:
  static constexpr Duration kLookEvery = std::chrono::milliseconds(100);

  template <class IsReported>
  void wait_once(uint32_t seen, IsReported&& reported, WaitMode mode) const {
    Looker looker(kLookEvery, mode);
    while (looker.goes_on()) {
      if (protocol::read_bell(header().to_client) == seen && !reported()) continue;
      return looker.found();
    }
    protocol::wait_bell(header().to_client, seen, kLookEvery);
  }
  void ask_for_device();
  Done group_failure() const;
  Done read_failure() const;
  // Who may say so first.
  enum class Told { kByWorker, kByDevice };
  bool is_behind(const std::atomic<uint64_t>& mark, uint64_t sequence, Told told = Told::kByWorker) const {
    if (mark.load(std::memory_order_acquire) >= sequence) return true;
    want(sequence, told);
    return false;
  }
  void want(uint64_t sequence, Told told) const;

  Session& session_;
  const uint32_t index_, home_index_;
  RingGroup own_group_;  // of a home
  RingGroup& group_;
  protocol::RingMemory memory_;
  mutable std::mutex print_mutex_;

  std::mutex mutex_;  // guards what follows, and more (above)
  protocol::RingWriter writer_;
  BulkArea bulk_;
  std::atomic<uint64_t> bulk_releases_{0};
  LastWork last_work_;
};

// Sleeps until `is_done()`, which a commit of what is done brings about: each look asks for one.
template <class IsDone>
Done wait_for_commit(const RingPort& ring, IsDone&& is_done) {
  return ring.wait_until([&] {
    if (is_done()) return true;
    ring.want_commit();
    return false;
  });
}

}  // namespace heddle::client
