#include "policy/dispatch/time_window.h"

#include <algorithm>
#include <cmath>

namespace heddle::policy {

void TimeWindow::add(TimePoint from, TimePoint to, uint32_t sharers) {
  if (to <= from) return;
  sum_ += Piece{from, to, sharers}.amount();
  if (!pieces_.empty() && pieces_.back().to == from && pieces_.back().sharers == sharers)
    pieces_.back().to = to;
  else
    pieces_.push_back({from, to, sharers});
}

double TimeWindow::had(TimePoint now) {
  const TimePoint begin = now - length_;
  while (!pieces_.empty() && pieces_.front().to <= begin) {
    sum_ -= pieces_.front().amount();
    pieces_.pop_front();
  }
  if (pieces_.empty()) sum_ = 0;
  double had = sum_;
  for (const Piece& piece : pieces_) {
    if (piece.from >= begin) break;
    had -= outside(piece, begin);
  }
  return had;
}

TimePoint TimeWindow::falls_to(double amount, TimePoint now) {
  double too_much = had(now) - amount;
  if (too_much <= 0) return now;
  const TimePoint begin = now - length_;
  for (const Piece& piece : pieces_) {
    const double inside = piece.amount() - outside(piece, begin);
    if (inside >= too_much) {
      const double time = std::ceil(too_much * piece.sharers);
      return std::max(piece.from, begin) + Duration(static_cast<int64_t>(time)) + length_;
    }
    too_much -= inside;
  }
  return pieces_.back().to + length_;
}

// What of the piece lies before `begin`.
double TimeWindow::outside(const Piece& piece, TimePoint begin) const {
  const Duration before = std::clamp(begin - piece.from, Duration{}, piece.to - piece.from);
  return static_cast<double>(before.count()) / piece.sharers;
}

}  // namespace heddle::policy
