#pragma once

#include <utility>

#include "worker/commit.h"

namespace heddle::worker {

// Where another program's fault ends this one's work too (MPS), only what can be run again outlives it. A guarded
// worker keeps to that: a record that cannot be run again, or not at a bearable price, waits until everything before it
// is done and committed, and then heddled has the task go on where it shares nobody's faults (docs/revocation.md). So
// does a record behind which no other worker could go on in this one's place any more.
//
// What is under way already cannot be kept back. Where it turns out that it is shown before all of it is done, and so
// can be lost, the task leaves with its next record.
//
// Issuer's thread only.
class Guard {
 public:
  // Work of other streams waits for a record that is kept back, and kernels that are under way may wait for it.
  static constexpr Duration kPatience = std::chrono::seconds(1);

  Guard(bool on, Commit& commit) : on_(on), commit_(commit) {}

  bool on() const { return on_; }
  // The task is to leave although the record at hand could be run again.
  bool leaves() const { return on_ && leaves_; }
  void leave_soon() { leaves_ = true; }
  // What is under way does not end: with the next that is lost, again.
  void stay_for_now() { leaves_ = false; }
  // Nothing is under way, and the next record is kept back.
  void ask() {
    if (!std::exchange(asked_, true)) commit_.tell(protocol::NeedsApart{commit_.log().task});
  }

 private:
  const bool on_;
  Commit& commit_;
  bool leaves_ = false, asked_ = false;
};

}  // namespace heddle::worker
