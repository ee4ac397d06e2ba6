#include "policy/percentiles.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace heddle::policy {
namespace {

constexpr uint64_t kStepsLog2 = 5;  // each doubling has 32 ranges
constexpr uint64_t kSteps = uint64_t{1} << kStepsLog2;
constexpr uint64_t kLongest = 86'400'000'000;  // a day, in microseconds

// Below `kSteps` microseconds each has a range of its own.
size_t range_of(uint64_t microseconds) {
  if (microseconds < kSteps) return microseconds;
  const uint64_t doublings = std::bit_width(microseconds) - 1 - kStepsLog2;
  return (doublings << kStepsLog2) + (microseconds >> doublings);
}

// The largest value of the range.
Duration top_of(size_t range) {
  uint64_t top = range;
  if (range >= 2 * kSteps) {
    const uint64_t doublings = (range >> kStepsLog2) - 1;
    top = (((range & (kSteps - 1)) + kSteps + 1) << doublings) - 1;
  }
  return std::chrono::microseconds(top);
}

}  // namespace

void Percentiles::add(Duration value) {
  const int64_t rounded_up = std::max<int64_t>(0, value.count() / 1000 + (value.count() % 1000 > 0));
  const size_t range = range_of(std::min(static_cast<uint64_t>(rounded_up), kLongest));
  if (counts_.size() <= range) counts_.resize(range + 1);
  ++counts_[range];
  ++count_;
  largest_ = std::max(largest_, value);
}

void Percentiles::add(const Percentiles& other) {
  counts_.resize(std::max(counts_.size(), other.counts_.size()));
  for (size_t range = 0; range < other.counts_.size(); ++range) counts_[range] += other.counts_[range];
  count_ += other.count_;
  largest_ = std::max(largest_, other.largest_);
}

Duration Percentiles::at(double part) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(std::clamp(part, 0.0, 1.0) * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t range = 0; range < counts_.size(); ++range) {
    seen += counts_[range];
    if (seen > 0 && seen >= wanted) return std::min(top_of(range), largest_);
  }
  return {};
}

}  // namespace heddle::policy
