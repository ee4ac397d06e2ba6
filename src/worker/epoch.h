#pragma once

// The epoch: the session's work since the last commit, which the next worker can run again from its beginning should
// this one die in the middle of it (docs/revocation.md).
//
// Work may be run again as long as nobody outside has seen what it did. So while an epoch is open what is done is held
// back (Commit), and memory that the work overwrites and that it reads is saved first (EpochMemory says which, UndoLog
// keeps it, the device copies it on the record's own stream). Streams that have to do with each other are committed
// together (Components): once everything is done that was handed over on them, and somebody wants it or nothing more is
// in the ring, while the rest is held back still. A next worker puts back nothing that they have touched, and passes
// over their records. With the last of them the epoch ends. All streams are committed together where modules' variables
// may have been written or text was printed, which is saved and shown as a whole.
//
//   closed  --a record with effects--> open
//   open    --all of it is done, and nothing more was taken--> closed            (any thread: Progress::commit_at)
//   any     --a record that cannot be run again--> exposed --all is done--> closed
//
// What is held back can be shown before it is committed where all of the epoch's work would do exactly the same again
// (ExactSpan): the program goes on, and the epoch with it, so that memory which was saved for it need not be saved anew
// for each of a program's waits. The next worker runs such work again one record after the other, as the program may
// have waited in between, and writes none of it into the program's memory. Space in the ring, frees, and whatever else
// acts at a commit wait for one.
//
// An open epoch is drained, so that it ends although more would follow, when somebody wants what is done and held back
// and its streams have more under way, when a record acts at its commit (a free, a host call, the task's end), when
// there is no room for more saves, and when what the next record has to do with is old. Kernels may wait for ones that
// come behind them, so a drain has a limit; after it the epoch is given up: what is done is shown, and until the rest
// is done this worker's death costs the program its session (exposed).
//
// Exposed is also all work beside host calls that have not returned: such a call may wait for any of it.
//
// Where copies may take a share of the time only (SaveBudget), a record for which there is no time left is let pass,
// and exposes the epoch like one that cannot be run again. In a guarded worker neither is let pass (Guard).
//
// A program that is alone on a device which nobody takes back needs none of it (ControlPage::is_alone): it is spared,
// which means exposed without a drain. When somebody comes, the next record waits for what is under way, and protection
// begins. A guarded worker keeps back even then what would make it impossible to leave later.
//
// Where long work alone is protected (LongWork), an epoch opens with long work, once everything before it is done, and
// is drained when that is done. What is short passes by: it is noted as work that cannot be run again, which it is
// while it is under way, and its memory is not looked at. So does long work whose copies would take more than a small
// part of its own time. Beside long work what is short is protected too, so that streams go on side by side; but behind
// long work on the only stream it waits for the epoch's end rather than have memory saved.
// Work that is known to be very long has an epoch of its own there, so that no more than it is done again.
//
// Issuer's thread only.

#include <functional>
#include <optional>

#include "protocol/undo_log.h"
#include "worker/bounded_wait.h"
#include "worker/components.h"
#include "worker/epoch_memory.h"
#include "worker/exact_span.h"
#include "worker/guard.h"
#include "worker/long_work.h"
#include "worker/save_budget.h"
#include "worker/variables.h"

namespace heddle::worker {

class Epoch {
 public:
  // A kernel that is waited for longer is no reason to hold its neighbours' results back.
  static constexpr Duration kPatience = std::chrono::milliseconds(20);
  // The same where nobody outside waits.
  static constexpr Duration kLongPatience = std::chrono::milliseconds(100);
  // From then on it is drained. A drain costs what the device idles meanwhile, some 50 us.
  static constexpr Duration kOld = std::chrono::milliseconds(100);

  enum class Step { kGo, kWait };

  // `calls_repeat`: libraries compute the same in the next worker; they may go by how many SMs there are.
  Epoch(protocol::RingMemory& ring, Modules& modules, OwnCopies& copies, Commit& commit, Progress& progress,
        Variables& variables, LongWork& long_work, SaveBudget budget, Guard& guard, protocol::UndoLog undo,
        protocol::BufferTable buffers, bool calls_repeat);

  // Whether epochs are kept at all: there is space for what they save.
  bool keeps() const { return undo_.capacity().value > 0; }

  // Whether the record that before() has let go just now cannot be run again.
  bool is_unprotected(uint64_t sequence) const { return keeps() && commit_.has_affected(sequence); }

  // What can be reached from now on, and what no more.
  void mapped(uint64_t number, uint64_t address, uint64_t bytes, bool host);
  void unmapped(uint64_t number) { memory_.segment_unmapped(number); }
  // Tells whether other streams' work follows behind the record that before() is called for. Once, before any.
  void look_ahead_by(std::function<bool()> others_follow) { others_follow_ = std::move(others_follow); }
  // Host calls that were handed over and have not returned.
  void host_calls(size_t open) { host_calls_ = open; }

  // In the place of a worker that has died there: puts back what it had saved and not committed. Behind the modules and
  // their variables, before any record.
  Checked<void> restore(const protocol::LogState& log);

  // Before the record goes to the device, on a stream that is there: it can be run again, or it is noted that it
  // cannot. kWait: not yet. `effects` is called where epochs are kept: effects(regions).
  template <class Effects>
  Checked<Step> before(const protocol::Record& record, Effects&& effects);

  // Whether the record, behind which the worker's death would be the session's, waits to be taken elsewhere (Guard).
  bool keeps_back(uint64_t sequence);

  // The record was taken; before the next one is.
  void taken(const protocol::RecordHeader& record);

  // A record acts when what comes before it is committed. False: not yet.
  bool settle();
  // Nothing can be taken from the ring just now, or nothing is there. `commits`: somebody waits for a commit.
  void rest(bool commits);
  // For how long the issuer may sleep then.
  std::optional<Duration> patience() const;
  // The session has failed: nothing will be run again.
  void fail();
  // All is committed, and no device memory is mapped any more.
  void end_task();

 private:
  enum class State { kClosed, kOpen, kExposed };
  enum class Drained { kYes, kNotYet, kLate };
  enum class Choice { kProtect, kPass, kWait };
  enum class End { kCommit, kShow };

  void note_variables();
  void spare(uint64_t sequence);
  bool begins_to_protect(uint64_t sequence);
  Choice choose(const protocol::Record& record);
  void pass(uint64_t sequence);
  bool costs_too_much(const Precautions& needed);
  bool may_follow(uint64_t sequence, uint32_t stream);
  void handed_over(const protocol::Record& record, const RecordEffects& effects, const Precautions& needed,
                   device::Tag saved);
  bool clear_the_way(const protocol::Record& record, const RecordEffects& effects);
  bool had_better_wait(uint32_t stream, const Precautions& needed);
  Checked<Step> before_known(const protocol::Record& record, const RecordEffects& effects);
  bool may_be_repeated(const RecordEffects& effects) const;
  bool begin(uint64_t sequence, uint32_t stream);
  void open(uint64_t sequence);
  void enter(State state);
  void expose(uint64_t sequence);
  // Returns the tag behind which all is saved.
  Checked<device::Tag> save(uint32_t stream, uint64_t sequence, const Precautions& needed);
  bool close();
  bool may_be_shown(TimePoint now);
  bool show(TimePoint now);
  Drained drain(TimePoint now, Duration patience, End end = End::kCommit);
  Drained await(uint64_t sequence, TimePoint now, Duration patience);
  uint64_t wanted() const { return ring_.header().wanted.load(std::memory_order_relaxed); }
  bool is_wanted() const;
  bool commit_apart(const std::vector<Components::Streams>& components);
  Checked<void> put_back(const protocol::UndoEntry& entry);

  protocol::RingMemory& ring_;
  Modules& modules_;
  OwnCopies& copies_;
  Commit& commit_;
  Progress& progress_;
  Variables& variables_;
  LongWork& long_work_;
  SaveBudget budget_;
  Guard& guard_;
  const bool calls_repeat_;
  protocol::UndoLog undo_;
  EpochMemory memory_;
  Components components_;
  uint64_t placed_ = 0;    // modules whose variables memory_ knows
  size_t host_calls_ = 0;  // open
  uint64_t taken_ = 0;     // the last record
  // What a worker before has handed over. It may have saved what these records left, which counts until they are
  // committed; so nothing is before all of them were handed over again.
  uint64_t again_until_ = 0;
  // Of that, what it had shown ahead: run again in the order of the log. The last record of it that was handed over.
  uint64_t in_order_until_ = 0, in_order_ = 0;
  uint32_t in_order_stream_ = 0;

  State state_ = State::kClosed;
  uint64_t began_at_ = 0, last_ = 0;  // what was done when it opened; the last record with effects that was let pass
  TimePoint began_{};                 // in this state
  TimePoint now_{};                   // at the last look
  Duration old_ = kOld;               // then it is drained; longer where that was given up
  bool record_waits_ = false;         // for the drain
  bool spared_ = false;               // exposed for no other reason than that the program was alone
  BoundedWait draining_;
  ExactSpan span_;

  // Where long work alone is protected.
  std::function<bool()> others_follow_ = [] { return true; };
  bool is_long_ = false;              // the record at hand
  uint64_t passed_ = 0, long_ = 0;    // the last short record that passed by, the last long one that is protected
  std::optional<uint32_t> only_one_;  // all of the open epoch is on that stream
};

template <class Effects>
Checked<Epoch::Step> Epoch::before(const protocol::Record& record, Effects&& effects) {
  if (!keeps() || (state_ != State::kOpen && variables_.obstructed())) {
    commit_.affects(record.header.sequence);
    return Step::kGo;
  }
  if (state_ != State::kOpen && commit_.is_alone()) {
    spare(record.header.sequence);
    return Step::kGo;
  }
  if (spared_ && !begins_to_protect(record.header.sequence)) return Step::kWait;
  if (long_work_.chooses()) {
    const Choice choice = choose(record);
    if (choice != Choice::kProtect) return choice == Choice::kPass ? Step::kGo : Step::kWait;
  }
  if (placed_ != modules_.loaded_count()) note_variables();
  return before_known(record, effects(memory_.regions()));
}

}  // namespace heddle::worker
