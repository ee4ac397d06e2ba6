#include "worker/byte_ranges.h"

#include <algorithm>

namespace heddle::worker {
namespace {

using Range = ByteRanges::Range;

// The first that ends at or behind `at`.
template <class Ranges>
auto from(Ranges& ranges, uint64_t at) {
  return std::lower_bound(ranges.begin(), ranges.end(), at,
                          [](const Range& range, uint64_t position) { return range.end < position; });
}

}  // namespace

void ByteRanges::add(Range range) {
  if (range.begin >= range.end) return;
  const auto first = from(ranges_, range.begin);
  auto last = first;
  for (; last != ranges_.end() && last->begin <= range.end; ++last) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
  }
  if (first == last) {
    ranges_.insert(first, range);
  } else {
    *first = range;
    ranges_.erase(first + 1, last);
  }
}

void ByteRanges::add(const ByteRanges& others) {
  for (const Range& range : others.ranges_) add(range);
}

bool ByteRanges::covers(Range range) const {
  if (range.begin >= range.end) return true;
  const auto found = from(ranges_, range.begin + 1);
  return found != ranges_.end() && found->begin <= range.begin && range.end <= found->end;
}

bool ByteRanges::intersects(Range range) const {
  const auto found = from(ranges_, range.begin + 1);
  return found != ranges_.end() && found->begin < range.end && range.begin < range.end;
}

ByteRanges ByteRanges::intersection(const ByteRanges& others) const {
  ByteRanges common;
  for (const Range& own : ranges_) {
    for (auto other = from(others.ranges_, own.begin + 1); other != others.ranges_.end() && other->begin < own.end;
         ++other)
      common.add({std::max(own.begin, other->begin), std::min(own.end, other->end)});
  }
  return common;
}

ByteRanges ByteRanges::without(const ByteRanges& others) const {
  ByteRanges rest;
  for (Range own : ranges_) {
    for (auto other = from(others.ranges_, own.begin + 1); other != others.ranges_.end() && other->begin < own.end;
         ++other) {
      rest.add({own.begin, other->begin});
      own.begin = std::min(other->end, own.end);
    }
    rest.add(own);
  }
  return rest;
}

uint64_t ByteRanges::bytes() const {
  uint64_t sum = 0;
  for (const Range& range : ranges_) sum += range.end - range.begin;
  return sum;
}

}  // namespace heddle::worker
