#pragma once

// Memory that heddled and the workers of one ring share and no program sees: what a worker measured, and how far it has
// come, must not lie where a tenant can write.
//
// One memfd for each ring, made and sealed by heddled, kept with the vault and given to each worker that is bound to
// the ring. The totals count since the ring was made: a worker goes on from what its forerunner left. Behind the page
// the memfd has space for the variables of the program's modules (saved_variables.h).
//
// The writer fills one of two slots and then publishes its number; the reader copies the slot that was published last
// and looks whether it still is. So a worker that dies while it writes leaves its last whole state, which is what
// heddled and the next worker read; there is no lock that a death could leave taken.
//
// The other way, heddled writes the lease: whether the worker may hand work to the device. Generation and state are one
// word, so that a look at it costs the worker one load; the terms of generation g stand in slot g & 1 before the word
// names g, and never change while it does. A reader that finds another generation in the word afterwards reads anew.
//
// How far the worker has come in the ring's log stands here for the case that it dies: whether the next worker can go
// on in its place, and from where, heddled and that worker read here, and not in the ring, whose words a tenant writes.
//
// Thread safety: usage has one writer at a time (the worker sees to that), the lease has heddled alone; any number of
// readers. Of the log's words one thread of the worker's writes each, as said at them.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/fd.h"
#include "core/units.h"
#include "protocol/stream_cuts.h"

namespace heddle::protocol {

// What the workers of a ring measured. Times are nanoseconds of CLOCK_MONOTONIC, as the device tells when it began and
// ended an operation.
struct Usage {
  // Totals of what is done.
  uint64_t launches = 0, kernel_ns = 0;  // sum of each launch's time on the device, first block to last
  uint64_t copies = 0, copied_bytes = 0;
  uint64_t copy_ns = 0;     // in which at least one copy was under way
  uint64_t busy_ns = 0;     // in which at least one kernel, library call or fill was on the device
  uint64_t overrun_ns = 0;  // by how much the host was late with launches and copies against the model
  // Of busy_ns, in which at least one of them was work that its worker's death would have lost; where epochs are kept.
  uint64_t unprotected_ns = 0;

  // A burst begins with the first record that comes to an idle ring and ends when nothing is pending or in flight, or
  // what is pending waits for the device's lease; one without work for the device does not count. The largest are those
  // of the latest 3 to 6 seconds with bursts.
  uint64_t bursts = 0;
  uint64_t longest_burst_ns = 0;
  uint64_t merged_burst_ns = 0;  // the longest, where bursts with gaps of at most 2 ms count as one
  uint64_t longest_gap_ns = 0;   // from a burst's end to the next one's beginning

  // Since when the device has a kernel, library call or fill without busy_ns counting the time; 0: it has none. Without
  // a meaning once the worker is gone.
  uint64_t busy_since_ns = 0;
};

// Whether the worker may hand work over. Under `open` dispatch one is written for eager tasks alone (open_lease.h).
struct Lease {
  enum class State : uint64_t {
    kOpen = 0,   // nobody asks for leases: the worker may, always
    kHeld,       // it may, until the time and within the window
    kWithdrawn,  // it may not: what is in flight ends, and then the lease is heddled's again
  };
  State state = State::kOpen;
  bool wanted = false;      // others wait for the device: the worker says when it has nothing more to do
  uint64_t generation = 0;  // counts how often the ring was lent a device

  // Terms of the generation. Times are nanoseconds of CLOCK_MONOTONIC.
  uint64_t until_ns = UINT64_MAX;  // from then on the worker gives the lease back by itself
  uint64_t window_ns = 0;          // of device time that may be in flight; 0: without bound
  bool whole_bursts = false;       // a burst that would not end before `until_ns` is not begun

  // State, `wanted` and generation, as they stand on the page.
  static constexpr uint64_t kStateMask = 3, kWantedBit = 4;
  static constexpr int kGenerationShift = 3;
  constexpr uint64_t word() const {
    return generation << kGenerationShift | (wanted ? kWantedBit : 0) | static_cast<uint64_t>(state);
  }
};

// What makes it impossible to go on in another worker, for as long as this one lives.
enum class Obstacle : uint64_t {
  kNone = 0,
  kDeviceMalloc,  // a kernel that may call malloc was launched: what it allocated dies with the worker
  kVariables,     // the modules have more bytes of variables than are saved
  kModules,       // more modules were loaded than are noted
  kNotSaved,      // the device did not copy the variables
  kAddresses,     // the program may have addresses of variables or functions, and the next worker has others
};

// Of the ring's print area: bytes written, and bytes that found no space.
struct Printed {
  uint64_t tail = 0, lost = 0;
  bool operator==(const Printed&) const = default;
};

// Everything up to `completed`, whose record ends at position `record_head`, is done, and was or may be shown to the
// program; and so is what single streams have behind it, up to their own cuts. What was handed over behind these can be
// run again (UndoLog), but for LogState::affected.
struct Cut {
  uint64_t completed = 0, record_head = 0;
  uint64_t variables_saved = 0;  // the record up to which what they held is saved (SavedVariables); 0: nothing is
  Printed printed{};             // when the cut was noted
  StreamCuts streams{};
};

// Where the ring's workers stand in its log: the latest cut, and more.
struct LogState : Cut {
  uint64_t task = 0;  // serial of the task that the words up to `obstacle` are of; 0: no worker has begun any
  bool ended = false, reset = false, unmapped = false;  // as TaskEnded has them; `reset` before the end, too
  Obstacle obstacle = Obstacle::kNone;
  uint64_t freed = 0;        // segments of the task that were given back
  uint64_t affected = 0;     // the last record that was handed over and has effects that cannot be repeated
  uint64_t handed_over = 0;  // the last one with effects that the device was given, whether it can be repeated or not
  // What the program may have been shown: up to here, be it committed or not. What is not is repeated exactly, and what
  // it has written to the program's memory is not written there again.
  uint64_t shown = 0;
  uint64_t done = 0;  // everything up to here the worker at work has done itself, or its forerunner had committed
  // The last one that may have written variables, and is committed or cannot be repeated.
  uint64_t variables_written = 0;
  uint64_t modules = 0;  // loaded, in the order of ControlPage::module()

  // Work with effects may be under way, and nobody could say how much of it was done.
  bool computes() const { return affected > completed; }
  // Work may be under way, be it such that can be done again.
  bool under_way() const { return handed_over > completed || computes(); }
  // The device may be at work on it. Else what is under way is done, and waits to be committed.
  bool at_work() const { return computes() || handed_over > std::max(completed, done); }
  bool variables_are_saved() const { return variables_saved >= variables_written; }
};

// A module that a worker has loaded.
struct LoadedModule {
  uint32_t module = 0;
  uint64_t addresses = 0;  // a digest of where its variables are; 0: it has none
};

class ControlPage {
 public:
  // Of the memfd: the page, behind it the space of SavedVariables (saved_variables.h), and of the UndoLog (undo_log.h).
  static constexpr Bytes kBytes{128 * kKiB};
  static constexpr Bytes kVariableBytes{16 * kMiB};  // the most that a program's variables may have together
  static constexpr Bytes kUndoTableBytes{260 * kKiB};
  static constexpr Bytes kMemoryBytes{kBytes.value + 4 * kKiB + 2 * kVariableBytes.value + kUndoTableBytes.value};
  static constexpr uint64_t kMostModules = 4096;   // that are noted
  static constexpr uint64_t kFreedNumbers = 1024;  // the latest

  // heddled: a page on which nothing was measured. `undo`: the most that epochs may save of device memory; it costs
  // memory while it is used. `long_from`: work that takes less is not protected by them; 0: all is. `save_permille`: of
  // a program's time, that saving may take; 0: any.
  static Result<std::pair<Fd, ControlPage>> create(Bytes undo = {}, Duration long_from = {},
                                                   uint32_t save_permille = 0);
  // Worker, and heddled again. `fd` must be sealed, and a page that create() made.
  static Result<ControlPage> attach(const Fd& fd);

  // Worker.
  Duration long_from() const { return Duration(layout().long_from_ns.load(std::memory_order_relaxed)); }
  uint32_t save_permille() const { return layout().save_permille.load(std::memory_order_relaxed); }
  void publish(const Usage& usage);
  // False where the worker published too often for the reader to get a whole state; `usage` is as it was then.
  bool read(Usage& usage) const;

  // heddled. The terms of a generation that stands there already must be the same.
  void write_lease(const Lease& lease);
  // Worker, and heddled after a restart. False where heddled wrote too often meanwhile; `lease` is as it was then.
  bool read_lease(Lease& lease) const;
  // Worker: what may have changed since read_lease(), as Lease::word() says it.
  uint64_t lease_word() const { return layout().lease.load(std::memory_order_relaxed); }

  // heddled: nobody else uses the ring's device, and nobody takes it back, so that what can be run again need not be
  // protected. Worker: whether that is so.
  void write_alone(bool alone) { layout().alone.store(alone, std::memory_order_release); }
  bool is_alone() const { return layout().alone.load(std::memory_order_acquire) != 0; }

  // Worker, the thread that takes records. What was noted of another task is forgotten; `fresh`: of a worker before,
  // too.
  void begin_task(uint64_t serial, bool fresh);
  // Before the record is handed over.
  void note_affected(uint64_t sequence) { layout().affected.store(sequence, std::memory_order_release); }
  // Not lower than by a worker before, whose records are handed over again.
  void note_handed_over(uint64_t sequence) {
    if (layout().handed_over.load(std::memory_order_relaxed) < sequence)
      layout().handed_over.store(sequence, std::memory_order_release);
  }
  // Everything up to there is done: before the program is shown it, although it is not committed.
  void note_shown(uint64_t sequence) {
    layout().done.store(sequence, std::memory_order_release);
    if (layout().shown.load(std::memory_order_relaxed) < sequence)
      layout().shown.store(sequence, std::memory_order_release);
  }
  // A worker that goes on in another's place begins there.
  void note_begun(uint64_t sequence) { layout().done.store(sequence, std::memory_order_release); }
  void note_variables_written(uint64_t sequence) {
    layout().variables_written.store(sequence, std::memory_order_release);
  }
  void note_reset() { layout().reset.store(1, std::memory_order_release); }
  void note_obstacle(Obstacle obstacle);
  // False where there is no more space.
  bool note_module(const LoadedModule& module);
  LoadedModule module(uint64_t index) const;
  // A segment of the task is unmapped: before the record that freed it counts as done.
  void note_freed(uint64_t number);
  // What was noted as number `index` of all, one of the latest kFreedNumbers.
  uint64_t freed(uint64_t index) const { return layout().freed_numbers[index % kFreedNumbers]; }
  // The task is over once `sequence` is done; 0: it is over.
  void note_end(uint64_t sequence, bool unmapped);
  // Worker, under one lock: before the program is shown it. One store makes all of it count. Of streams' cuts there is
  // space for StreamCuts::kMost.
  void note_cut(const Cut& cut);
  // Anybody; only of a worker that is gone it is certain.
  LogState log() const;

 private:
  static constexpr size_t kWords = sizeof(Usage) / sizeof(uint64_t);
  struct Slot {
    alignas(64) std::atomic<uint64_t> words[kWords];
  };
  struct Terms {
    std::atomic<uint64_t> until_ns, window_ns, whole_bursts;
  };
  struct CutWords {
    std::atomic<uint64_t> completed, record_head, variables_saved, print_tail, print_lost, streams;
  };
  struct StreamCutWords {
    std::atomic<uint64_t> stream, sequence;
  };
  struct Layout {
    uint32_t magic, version;                      // written by create() alone
    alignas(64) std::atomic<uint64_t> published;  // how many states were; the latest stands in slot `published & 1`
    Slot slots[2];
    alignas(64) std::atomic<uint64_t> lease;  // Lease::word()
    Terms terms[2];                           // those of generation g in slot g & 1
    std::atomic<uint64_t> alone;              // heddled, as write_alone() says
    // The log.
    alignas(64) std::atomic<uint64_t> task, ended, unmapped, reset, obstacle;
    std::atomic<uint64_t> freed, modules;
    alignas(64) std::atomic<uint64_t> affected, handed_over, variables_written, shown, done;
    alignas(64) std::atomic<uint64_t> cut;  // how many were made; the latest stands in slot `cut & 1`
    CutWords cuts[2];
    alignas(64) std::atomic<uint64_t> freed_numbers[kFreedNumbers];
    std::atomic<uint64_t> module_ids[kMostModules], module_addresses[kMostModules];
    alignas(64) std::atomic<uint64_t> long_from_ns;  // this and the next: written by create() alone
    std::atomic<uint32_t> save_permille;
    StreamCutWords stream_cuts[2][StreamCuts::kMost];  // of each cut its first `streams`
  };

  void read_cut(uint64_t number, Cut& cut) const;
  Layout& layout() const { return *static_cast<Layout*>(mapping_.data()); }

  Mapping mapping_;
};

}  // namespace heddle::protocol
