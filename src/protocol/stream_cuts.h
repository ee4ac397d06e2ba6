#pragma once

// Up to which record single streams are done and committed, ahead of the rest of the log (src/worker/epoch.h): of a few
// of them. Not thread-safe.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::protocol {

class StreamCuts {
 public:
  static constexpr size_t kMost = 64;  // that the control page has space for
  struct Cut {
    uint32_t stream = 0;
    uint64_t sequence = 0;
    bool operator==(const Cut&) const = default;
  };

  // 0: of that stream nothing is.
  uint64_t of(uint32_t stream) const {
    const auto found = std::find_if(cuts_.begin(), cuts_.end(), [&](const Cut& cut) { return cut.stream == stream; });
    return found == cuts_.end() ? 0 : found->sequence;
  }
  // A cut never falls.
  void raise(const Cut& to) {
    const auto found =
        std::find_if(cuts_.begin(), cuts_.end(), [&](const Cut& cut) { return cut.stream == to.stream; });
    if (found == cuts_.end()) {
      cuts_.push_back(to);
    } else {
      found->sequence = std::max(found->sequence, to.sequence);
    }
  }
  // Everything up to there is committed.
  void forget(uint64_t completed) {
    std::erase_if(cuts_, [&](const Cut& cut) { return cut.sequence <= completed; });
  }
  // The furthest of them; 0: there is none.
  uint64_t last() const {
    uint64_t last = 0;
    for (const Cut& cut : cuts_) last = std::max(last, cut.sequence);
    return last;
  }

  bool empty() const { return cuts_.empty(); }
  size_t size() const { return cuts_.size(); }
  void clear() { cuts_.clear(); }
  auto begin() const { return cuts_.begin(); }
  auto end() const { return cuts_.end(); }
  bool operator==(const StreamCuts&) const = default;

 private:
  std::vector<Cut> cuts_;
};

}  // namespace heddle::protocol
