#include "worker/bursts.h"

#include <algorithm>
#include <utility>

namespace heddle::worker {

void Bursts::begin(TimePoint at) {
  if (std::exchange(open_, true)) return;
  worked_ = false;
  begin_ = end_ = at;
}

void Bursts::work(TimePoint began, TimePoint ended) {
  begin(std::max(began, last_end_));
  worked_ = true;
  end_ = std::max(end_, ended);
}

void Bursts::end() {
  if (std::exchange(open_, false) && worked_) close();
}

void Bursts::close() {
  turn_window();
  const Duration gap = std::max(begin_ - last_end_, Duration::zero());
  if (count_ > 0) now_.gap = std::max(now_.gap, gap);
  if (count_ == 0 || gap > kMergedGap) merged_begin_ = begin_;
  ++count_;
  last_end_ = end_;
  now_.burst = std::max(now_.burst, end_ - begin_);
  now_.merged = std::max(now_.merged, end_ - merged_begin_);
}

void Bursts::turn_window() {
  const Duration age = end_ - window_;
  if (age < kWindow) return;
  before_ = age < 2 * kWindow ? now_ : Largest{};
  now_ = {};
  window_ = end_;
}

Bursts::Largest Bursts::largest() const {
  return {std::max(now_.burst, before_.burst), std::max(now_.merged, before_.merged), std::max(now_.gap, before_.gap)};
}

}  // namespace heddle::worker
