#include "policy/placement/sm_map.h"

#include <algorithm>
#include <limits>

#include "policy/invariant.h"

namespace heddle::policy {

SmMap::SmMap(const DeviceSpec& device) : sms_(device.sms), runs_{{0, device.sm.whole}} {
  merge_runs();
}

bool SmMap::fits(const SmShare& block, uint64_t count) const {
  if (count == 0) return true;
  if (most_free_.blocks == 0 || block.warps > most_free_.warps || block.registers > most_free_.registers ||
      block.shared > most_free_.shared)
    return false;
  if (count > totals_.blocks || count * block.warps > totals_.warps || count * block.registers > totals_.registers ||
      count * block.shared > totals_.shared)
    return false;
  uint64_t fit = 0;
  for (size_t run = 0; run < runs_.size(); ++run) {
    fit += uint64_t{end_of(run) - runs_[run].first} * fitting(runs_[run].left, block);
    if (fit >= count) return true;
  }
  return false;
}

uint64_t SmMap::capacity(const std::vector<uint32_t>& fit) const {
  uint64_t sum = 0;
  for (size_t run = 0; run < runs_.size(); ++run) sum += uint64_t{end_of(run) - runs_[run].first} * fit[run];
  return sum;
}

// `fit` is how many blocks each run's SMs can take, `count` at least 1 and at most the capacity. The last round,
// whether or not it reaches every SM, is left over, so that it can be dealt from the cursor.
SmMap::Rounds SmMap::plan(const std::vector<uint32_t>& fit, uint64_t count) const {
  Rounds rounds{0, count};
  for (;;) {
    uint64_t open = 0;  // SMs that take part in the next round
    uint32_t until = std::numeric_limits<uint32_t>::max();
    for (size_t run = 0; run < runs_.size(); ++run) {
      if (fit[run] <= rounds.full) continue;
      open += end_of(run) - runs_[run].first;
      until = std::min(until, fit[run]);
    }
    require(open > 0, "blocks are planned only where there is room");
    const uint64_t whole = std::min<uint64_t>((rounds.last - 1) / open, until - rounds.full);
    if (whole == 0) return rounds;
    rounds.full += static_cast<uint32_t>(whole);
    rounds.last -= whole * open;
  }
}

// Deals one block to each of the next SMs from the cursor on that have space for it, and leaves the cursor behind them.
void SmMap::deal_last(const std::vector<uint32_t>& fit, const Rounds& rounds, std::vector<Share>& shares) {
  uint64_t due = rounds.last;
  const uint32_t start = cursor_;
  const auto deal_between = [&](uint32_t from, uint32_t to) {
    for (size_t run = 0; run < runs_.size() && due > 0; ++run) {
      const uint32_t first = std::max(from, runs_[run].first);
      const uint32_t end = std::min(to, end_of(run));
      if (first >= end || fit[run] <= rounds.full) continue;
      const uint32_t stop = first + static_cast<uint32_t>(std::min<uint64_t>(end - first, due));
      shares.push_back({first, stop, 1});
      due -= stop - first;
      cursor_ = stop % sms_;
    }
  };
  deal_between(start, sms_);
  deal_between(0, start);
  require(due == 0, "the last round has an SM for each block");
}

std::vector<SmMap::Share> SmMap::add(const SmShare& block, uint64_t count) {
  std::vector<uint32_t> fit;
  fit.reserve(runs_.size());
  for (const Run& run : runs_) fit.push_back(fitting(run.left, block));
  count = std::min(count, capacity(fit));
  std::vector<Share> shares;
  if (count == 0) return shares;
  const Rounds rounds = plan(fit, count);
  for (size_t run = 0; run < runs_.size(); ++run) {
    if (const uint32_t each = std::min(fit[run], rounds.full)) shares.push_back({runs_[run].first, end_of(run), each});
  }
  deal_last(fit, rounds, shares);
  for (const Share& share : shares) {
    change(share, [&](SmShare& left) {
      left.blocks -= share.blocks;
      left.warps -= share.blocks * block.warps;
      left.registers -= share.blocks * block.registers;
      left.shared -= share.blocks * block.shared;
    });
  }
  merge_runs();
  return shares;
}

void SmMap::remove(const SmShare& block, const std::vector<Share>& shares) {
  for (const Share& share : shares) {
    change(share, [&](SmShare& left) {
      left.blocks += share.blocks;
      left.warps += share.blocks * block.warps;
      left.registers += share.blocks * block.registers;
      left.shared += share.blocks * block.shared;
    });
  }
  merge_runs();
}

SmShare SmMap::left(uint32_t sm) const {
  const auto behind =
      std::upper_bound(runs_.begin(), runs_.end(), sm, [](uint32_t at, const Run& run) { return at < run.first; });
  return std::prev(behind)->left;
}

// The run that begins at `sm`, made by splitting the one around it; runs_.size() for the end of the device.
size_t SmMap::split_at(uint32_t sm) {
  const auto run =
      std::lower_bound(runs_.begin(), runs_.end(), sm, [](const Run& it, uint32_t at) { return it.first < at; });
  const auto index = static_cast<size_t>(run - runs_.begin());
  if (sm == sms_ || (run != runs_.end() && run->first == sm)) return index;
  runs_.insert(run, Run{sm, runs_[index - 1].left});
  return index;
}

template <class Change>
void SmMap::change(const Share& share, Change apply) {
  const size_t first = split_at(share.first);
  const size_t end = split_at(share.end);
  for (size_t run = first; run < end; ++run) apply(runs_[run].left);
}

// Joins neighbours that became equal and sums up anew.
void SmMap::merge_runs() {
  const auto same = [](const Run& a, const Run& b) { return a.left == b.left; };
  runs_.erase(std::unique(runs_.begin(), runs_.end(), same), runs_.end());
  totals_ = {};
  most_free_ = {};
  for (size_t run = 0; run < runs_.size(); ++run) {
    const SmShare& left = runs_[run].left;
    const uint64_t sms = end_of(run) - runs_[run].first;
    totals_.blocks += sms * left.blocks;
    totals_.warps += sms * left.warps;
    totals_.registers += sms * left.registers;
    totals_.shared += sms * left.shared;
    most_free_ = {std::max(most_free_.blocks, left.blocks), std::max(most_free_.warps, left.warps),
                  std::max(most_free_.registers, left.registers), std::max(most_free_.shared, left.shared)};
  }
}

}  // namespace heddle::policy
