#pragma once

#include <cstdint>
#include <deque>

#include "core/units.h"

namespace heddle::policy {

// How long somebody had a device in the latest part of the past, of intervals that follow each other. Where several had
// it at a time, each had a part.
class TimeWindow {
 public:
  explicit TimeWindow(Duration length = std::chrono::seconds(10)) : length_(length) {}

  // It was one of `sharers` in [from, to). Not before an earlier call's `from`.
  void add(TimePoint from, TimePoint to, uint32_t sharers);
  // What it had in [now - length, now], in nanoseconds. `now` never goes back.
  double had(TimePoint now);
  // Whether it had nothing at all in it, as of the last call of had().
  bool empty() const { return pieces_.empty(); }
  // When what it had will have fallen to `amount` if it has nothing more; `now` where it has.
  TimePoint falls_to(double amount, TimePoint now);

 private:
  struct Piece {
    TimePoint from, to;
    uint32_t sharers;
    double amount() const { return static_cast<double>((to - from).count()) / sharers; }
  };
  double outside(const Piece& piece, TimePoint begin) const;

  Duration length_;
  std::deque<Piece> pieces_;
  double sum_ = 0;  // of all pieces, whole
};

}  // namespace heddle::policy
