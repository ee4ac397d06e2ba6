#pragma once

// The variables of the session's modules, saved for the next worker: they lie in this one's part of the device, and die
// with it.
//
// Which modules were loaded, in which order, and where their variables lie is noted as it happens: a next worker loads
// them in that order, and finds whether it has every variable where the program may know it to be. A device that does
// not promise that (`stay`) may have them anywhere, as long as the program cannot have the address of a variable or
// function; once it may, no other worker can go on.
//
// What they hold is saved when the ring is quiet, or an epoch ends (epoch.h), after records that may have written them:
// whole, beside what was saved last. That takes at most a hundredth of the time: a program that waits for each of its
// launches is saved every so many of them, and until the next save no other worker can go on (protocol::LogState).
// Within an open epoch what was saved before it is enough: its records are run again.
//
// A record may write variables where a loaded module has some that are not constant and it calls a library or launches
// a kernel that may write some by what its code says (image/effects.h): by name, through an address from memory, or
// through a parameter, once the program may have a variable's address (cudaGetSymbolAddress, a module whose variables
// begin with addresses in them, a kernel that keeps one; and in a worker that goes on in another's place). And where it
// names one as the end of a copy or fill.
//
// Issuer's thread, but for done().

#include <algorithm>

#include "protocol/saved_variables.h"
#include "worker/modules.h"
#include "worker/own_copies.h"
#include "worker/progress.h"

namespace heddle::worker {

class Variables {
 public:
  // `stay`: the next worker will have variables where this one has them; else an address that is told is in its way.
  Variables(OwnCopies& copies, Modules& modules, Commit& commit, Progress& progress, protocol::SavedVariables saved,
            bool stay)
      : copies_(copies),
        modules_(modules),
        commit_(commit),
        progress_(progress),
        saved_(std::move(saved)),
        stay_(stay) {}

  // Notes what was loaded since.
  void note_modules();
  // Whether no other worker could go on in this one's place any more once the kernel is launched; once another record
  // is handed over (`names_one`: it names a variable that it writes); once the program has a variable's address.
  bool would_obstruct(const KernelTraits& kernel) const;
  bool would_obstruct(bool names_one) const;
  bool address_would_obstruct() const { return !obstructed_ && !stay_; }
  // The record is about to be handed over; `names_one`: it names a variable that it writes.
  void about_to_run(uint64_t sequence, bool names_one = false);
  // The same of a kernel's launch.
  void about_to_launch(uint64_t sequence, const KernelTraits& kernel);
  // The program may have the address of a variable or a function from now on.
  void tell_addresses();

  // Everything up to `sequence` is done, and nothing else was handed over: saves what was written, if it is time.
  void save_if_due(uint64_t sequence, TimePoint now);
  // The same, whatever the time. False where what lasts is in the way of another worker (protocol::Obstacle).
  bool save_now(uint64_t sequence);
  // An epoch is about to be committed, and everything up to `sequence` is done: saves what was written, if it is time,
  // or `always`; else it is noted that it was written.
  void commit(uint64_t sequence, TimePoint now, bool always);
  // Of an epoch that is not repeated: what it may have written was not saved.
  void note_uncommitted() {
    if (kept_ < written_) commit_.writes_variables(written_);
  }
  // Another worker cannot go on for good (protocol::Obstacle).
  bool obstructed() const { return obstructed_; }
  bool stay() const { return stay_; }
  bool to_be_saved() const { return kept_ < written_ && !obstructed_; }
  // Until then.
  Duration until_due(TimePoint now) const { return std::max(due_ - now, Duration::zero()); }

  // A worker that goes on where `log` says: the modules that its forerunner had, with what their variables held.
  Checked<void> restore(const protocol::LogState& log);

 private:
  enum class Way { kSave, kRestore };
  bool save(uint64_t sequence);
  Checked<void> load_again(uint64_t index);
  // Copies between an area and the variables of the first `count` modules, and waits. False where the device fails.
  bool move(Way way, uint64_t count, std::span<std::byte> area);
  void note(protocol::Obstacle obstacle);
  bool new_modules_obstruct() const;

  OwnCopies& copies_;
  Modules& modules_;
  Commit& commit_;
  Progress& progress_;
  protocol::SavedVariables saved_;
  const bool stay_;
  uint64_t noted_ = 0;               // modules
  uint64_t written_ = 0, kept_ = 0;  // sequences: may have written; saved
  TimePoint due_{};                  // of the next save
  bool obstructed_ = false, addresses_told_ = false;
};

}  // namespace heddle::worker
