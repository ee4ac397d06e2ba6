#pragma once

#include <algorithm>

#include "core/clock.h"

namespace heddle::worker {

// Whether what an epoch has done can be shown before it is committed, and for how long that pays.
//
// It can where all of its work would do exactly the same again, and from the same input: then the program may know what
// it did, since nothing else would ever come of it (output commit under piecewise determinism, Elnozahy et al., "A
// survey of rollback-recovery protocols", section 2.4). It pays where commits are dear: memory that was saved for the
// epoch must be saved anew for the next one. So the epoch goes on for many times as long as its copies take, and a
// worker's death costs no more than that.
class ExactSpan {
 public:
  // Copies take a 64th of the time then, 1.6 %.
  static constexpr int kTimesItsCopies = 64;
  // No more is run again, however long the copies take.
  static constexpr Duration kLongest = std::chrono::seconds(1);

  // An epoch opens.
  void begin(TimePoint now) {
    began_ = now;
    copying_ = {};
    exact_ = true;
  }
  // Work that may do something else the next time, or find something else, is in it.
  void forgo() { exact_ = false; }
  // For so long, on its stream.
  void copies(Duration time) { copying_ += time; }

  Duration length() const { return std::min(kLongest, kTimesItsCopies * copying_); }
  // It may be shown, and had better not be committed yet.
  bool goes_on(TimePoint now) const { return exact_ && now - began_ < length(); }
  // Until it had better be, if it goes on.
  Duration left(TimePoint now) const { return length() - (now - began_); }

 private:
  TimePoint began_{};
  Duration copying_{};
  bool exact_ = false;
};

}  // namespace heddle::worker
