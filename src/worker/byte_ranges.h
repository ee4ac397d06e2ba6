#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::worker {

// A set of bytes: ranges in order, none of which touches another.
class ByteRanges {
 public:
  struct Range {
    uint64_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };

  ByteRanges() = default;
  explicit ByteRanges(Range range) { add(range); }

  void add(Range range);
  void add(const ByteRanges& others);
  bool intersects(Range range) const;
  // All of it, or none of it to ask for.
  bool covers(Range range) const;
  ByteRanges intersection(const ByteRanges& others) const;
  ByteRanges without(const ByteRanges& others) const;

  void clear() { ranges_.clear(); }  // its memory is kept
  bool empty() const { return ranges_.empty(); }
  size_t count() const { return ranges_.size(); }
  uint64_t bytes() const;
  auto begin() const { return ranges_.begin(); }
  auto end() const { return ranges_.end(); }
  bool operator==(const ByteRanges&) const = default;

 private:
  std::vector<Range> ranges_;
};

}  // namespace heddle::worker
