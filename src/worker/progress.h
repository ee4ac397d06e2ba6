#pragma once

// What of the log is done. What of it the program is shown is commit.h's.
//
// Every record passes enter -> (hand_over) -> finish. Records of different streams finish in any order; the watermark
// `completed` is the longest finished prefix.
// A stream's `completed` never runs ahead of work that the stream still has on the device: a record that is finished
// without the device while its stream is busy ("trailing") shows only when the stream is idle.
//
// Thread safety: the issuer enters and hands over; issuer and completions thread finish. Between enter and finish a
// slot's plain fields belong to whoever holds the record; the device's queue orders the two. `done` is what makes a
// slot visible to the advancing thread, under mutex_. The values that decide anything are private copies: a tenant can
// write to the ring.
//
// "Done" and "committed" differ while an epoch is open: the first serves what goes on in here (stream order, waits for
// events, slots), the second everything that leaves the worker. Streams may be committed ahead of the log: a record
// behind what is committed of the log is if it comes before its stream's cut.

#include <atomic>
#include <memory>
#include <mutex>
#include <span>

#include "protocol/ring_reader.h"
#include "worker/commit.h"
#include "worker/kernel_times.h"

namespace heddle::worker {

// A record between enter and finish.
struct Pending {
  std::atomic<uint64_t> done{0};  // its sequence, once finished
  uint64_t end = 0;               // record position behind it
  uint64_t bytes = 0;             // of a copy
  protocol::RecordType type = protocol::RecordType::kPad;
  uint32_t stream = 0;
  uint32_t event = 0;
  bool on_device = false;
  bool unprotected = false;
  WorkKind timed;  // how long work of that kind takes is wanted (LongWork); what == 0: it is not
};

struct Finished {
  uint64_t sequence = 0;
  TimePoint when{};
};

class Progress {
 public:
  // Starts behind what the control page says is done. `ring` and `commit` must outlive it.
  static Result<std::unique_ptr<Progress>> create(protocol::RingMemory& ring, Commit& commit);

  // Issuer. Whether the log may hold `sequence` already: an honest client never lets it overtake what is committed by
  // more than the record area.
  bool has_slot(uint64_t sequence) const { return sequence - completed() <= mask_ + 1; }
  void enter(const protocol::Record& record, uint64_t bytes = 0, WorkKind timed = {});
  // The record goes to the device now; take_back where the device refused it. `unprotected`: it cannot be run again.
  void hand_over(uint64_t sequence, bool unprotected = false);
  void take_back(uint64_t sequence);
  // Nothing of this stream is on the device.
  bool idle(uint32_t stream) const { return streams_[stream].on_device.load(std::memory_order_acquire) == 0; }
  // The issuer wants to_worker to be rung when `completed` reaches `sequence`; kNever for no more.
  static constexpr uint64_t kNever = ~0ull;
  void wake_issuer_at(uint64_t sequence) { wake_at_.store(sequence, std::memory_order_seq_cst); }
  // The same, beside that, and once.
  void wake_issuer_once_at(uint64_t sequence) { wake_once_at_.store(sequence, std::memory_order_seq_cst); }

  // When that very record is done, whatever of those before it is not.
  void wake_issuer_when_done(uint64_t sequence) { watched_.store(sequence, std::memory_order_seq_cst); }

  // Any thread: whether the issuer waits for the end of anything.
  bool wakes_issuer() const {
    return wake_at_.load(std::memory_order_relaxed) != kNever ||
           wake_once_at_.load(std::memory_order_relaxed) != kNever ||
           watched_.load(std::memory_order_relaxed) > completed_.load(std::memory_order_relaxed);
  }

  // Either thread. Publishes, and wakes who waits for it.
  void finish(std::span<const Finished> records);
  void finish(uint64_t sequence);
  const Pending& pending(uint64_t sequence) const { return slots_[sequence & mask_]; }
  uint64_t completed() const { return completed_.load(std::memory_order_seq_cst); }
  bool done(uint64_t sequence) const;
  // Of what is completed, what is committed. Behind an open epoch's beginning nothing is, but for streams' cuts.
  uint64_t committed() const { return commit_.holding() ? held_at_.load(std::memory_order_acquire) : completed(); }
  // And of that, what the program was shown of the log: by a worker before, too.
  uint64_t shown() const { return std::max(committed(), shown_.load(std::memory_order_acquire)); }
  // Issuer. Whether the stream's records up to `sequence` are, by its own cut: by a worker before, too.
  bool is_cut(uint32_t stream, uint64_t sequence) const { return sequence <= streams_[stream].cut; }
  // Issuer. Of a record that is entered, and of one that is not: it was done in a worker before.
  bool is_cut(uint64_t sequence) const {
    const Pending& slot = pending(sequence);
    return keeps_order(slot.type) && is_cut(slot.stream, sequence);
  }
  bool is_cut(const protocol::RecordHeader& record) const {
    return keeps_order(record.type) && is_cut(record.stream, record.sequence);
  }

  // Issuer: an epoch begins (epoch.h). Nothing that has effects is under way.
  void hold();
  // Issuer: nothing with effects is handed over behind `sequence`. Once everything up to there is done it is committed,
  // by whichever thread finishes it; at once, if it is.
  void commit_at(uint64_t sequence);
  // The same, but it is shown and not committed, and so is what ends behind it, until go_on_holding(). False where it
  // is done and can only be shown with its commit.
  bool show_at(uint64_t sequence);
  // Issuer: more follows after all. False where it was committed meanwhile.
  bool go_on_holding();
  // Issuer: commits those of the components on which everything is done that was handed over; nothing if none is. The
  // issuer is woken when another stream has nothing more on the device. Returns what was committed.
  std::vector<uint32_t> commit_done(const std::vector<std::vector<uint32_t>>& components);
  // Issuer: what is done is shown, although it cannot be done again; was noted before (Commit::affects).
  void show_uncommitted();
  // Issuer: what Variables has saved counts from now on; in an open epoch with its commit.
  void saved_variables(uint64_t sequence);

  // The stream stands at host call `sequence`: tells the client.
  void reach_host_call(uint64_t sequence);
  bool host_call_reached(uint32_t stream, uint64_t sequence) const {
    return streams_[stream].host_call.load(std::memory_order_acquire) >= sequence;
  }

 private:
  struct Stream {
    std::atomic<uint32_t> on_device{0};
    std::atomic<uint64_t> host_call{0};
    uint64_t done = 0, trailing = 0;  // under mutex_
    uint64_t entered = 0, cut = 0;    // the issuer's: the latest record that keeps order; up to where it is committed
  };

  Progress(protocol::RingMemory& ring, Commit& commit) : ring_(ring), commit_(commit) {}
  void complete(const Finished& finished);
  void complete_event(const Pending& slot, const Finished& finished);
  void advance();
  enum class Shown { kYes, kNotYet, kWithItsCommit };
  Shown show_if_due();
  Shown end_at(uint64_t sequence, bool ahead);
  bool commit_streams(const std::vector<uint32_t>& streams);

  protocol::RingMemory& ring_;
  Commit& commit_;
  uint64_t mask_ = 0;
  std::unique_ptr<Pending[]> slots_;
  std::unique_ptr<Stream[]> streams_;
  std::unique_ptr<uint64_t[]> events_;  // by slot, sequence of the latest record that was reached; under mutex_
  std::mutex mutex_;
  uint64_t commit_at_ = kNever;   // under mutex_
  bool ahead_ = false;            // there: it is shown, and not committed; under mutex_
  bool wakes_when_idle_ = false;  // the issuer, when a stream has nothing more on the device; under mutex_
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> held_at_{0};  // what was completed when the epoch began
  std::atomic<uint64_t> shown_{0};    // ahead of its commit
  std::atomic<uint64_t> wake_at_{kNever}, wake_once_at_{kNever}, watched_{0};
};

}  // namespace heddle::worker
