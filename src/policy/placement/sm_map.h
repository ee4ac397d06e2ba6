#pragma once

#include <vector>

#include "policy/occupancy.h"

namespace heddle::policy {

// What is left on each SM of one device, while blocks are dealt to the SMs one at a time, round robin, past those
// without space (CASE section III, Alg. 2).
//
// Dealing block by block would cost one step a block. Instead, neighbouring SMs that have the same left are kept as one
// run, and whole rounds are dealt at once. With R runs (1 on an idle device; each task adds at most a few, and they
// merge again when it ends):
//   fits: four products where the totals or the emptiest SM already say no, else R divisions by resource;
//   add, remove: O(R log R), plus the runs that the task splits.
class SmMap {
 public:
  // Blocks on the SMs [first, end), the same number on each.
  struct Share {
    uint32_t first = 0;
    uint32_t end = 0;
    uint32_t blocks = 0;
  };

  explicit SmMap(const DeviceSpec& device);

  // Whether `count` blocks of size `block` have space at once.
  bool fits(const SmShare& block, uint64_t count) const;
  // Deals out `count` blocks, or as many as have space, and says where they went.
  std::vector<Share> add(const SmShare& block, uint64_t count);
  // Takes back what add() returned for the same `block`.
  void remove(const SmShare& block, const std::vector<Share>& shares);

  // What is left on one SM, for tests and views.
  SmShare left(uint32_t sm) const;
  size_t runs() const { return runs_.size(); }

 private:
  struct Run {
    uint32_t first;
    SmShare left;
  };
  struct Totals {
    uint64_t blocks = 0, warps = 0, registers = 0, shared = 0;
  };
  struct Rounds {
    uint32_t full = 0;  // rounds that every SM with space for them takes part in
    uint64_t last = 0;  // blocks of the round after those: at most one for each SM that still has space
  };

  uint32_t end_of(size_t run) const { return run + 1 < runs_.size() ? runs_[run + 1].first : sms_; }
  uint64_t capacity(const std::vector<uint32_t>& fit) const;
  Rounds plan(const std::vector<uint32_t>& fit, uint64_t count) const;
  void deal_last(const std::vector<uint32_t>& fit, const Rounds& rounds, std::vector<Share>& shares);
  size_t split_at(uint32_t sm);
  template <class Change>
  void change(const Share& share, Change apply);
  void merge_runs();

  uint32_t sms_;
  uint32_t cursor_ = 0;    // the SM that is offered the next block
  std::vector<Run> runs_;  // ordered, cover all SMs, neighbours differ
  Totals totals_;          // sums over all SMs
  SmShare most_free_;      // for each resource, the most that any SM has left
};

}  // namespace heddle::policy
