#include "device/software/block_queue.h"

#include <algorithm>

namespace heddle::software {
namespace {

// Cheap blocks are dealt out by the dozen, or handing them over would cost more than running them.
constexpr uint64_t kMostBlocksARun = 64;
// Of what is left, a thread takes one part in so many of its even share, so that all finish about together.
constexpr uint64_t kPartsOfAShare = 4;

}  // namespace

void BlockQueue::add_grid(std::shared_ptr<Grid> grid, int priority) {
  auto behind = std::find_if(grids_.begin(), grids_.end(), [&](const Entry& e) { return e.priority > priority; });
  grids_.insert(behind, {std::move(grid), priority});
}

void BlockQueue::add_run(BlockRun run) {
  // Blocks of the run that have not begun may be what the first one waits for: they get a turn of their own.
  if (run.block && run.end - run.next > 1) {
    BlockRun rest;
    rest.grid = run.grid;
    rest.next = run.next + 1;
    rest.end = std::exchange(run.end, run.next + 1);
    rest.sm = (run.sm + 1) % sm_count_;
    runs_.push_back(std::move(rest));
  }
  runs_.push_back(std::move(run));
}

std::optional<BlockRun> BlockQueue::take() {
  bool deal_first = std::exchange(deal_next_, !deal_next_) || runs_.empty();
  if (deal_first) {
    if (auto dealt = deal()) return dealt;
  }
  if (runs_.empty()) return deal_first ? std::nullopt : deal();
  BlockRun run = std::move(runs_.front());
  runs_.pop_front();
  return run;
}

std::optional<BlockRun> BlockQueue::deal() {
  for (auto entry = grids_.begin(); entry != grids_.end(); ++entry) {
    if (entry->grid->resident >= entry->grid->capacity) continue;
    Entry chosen = *entry;
    BlockRun run = cut(*chosen.grid);
    run.grid = chosen.grid;
    grids_.erase(entry);
    if (!chosen.grid->all_dealt()) add_grid(chosen.grid, chosen.priority);  // behind its equals
    return run;
  }
  return std::nullopt;
}

BlockRun BlockQueue::cut(Grid& grid) const {
  uint64_t left = grid.blocks() - grid.next;
  uint64_t count = std::clamp<uint64_t>(left / (threads_ * kPartsOfAShare), 1, kMostBlocksARun);
  count = std::min(count, grid.capacity - grid.resident);
  BlockRun run;
  run.next = grid.next;
  run.end = grid.next + count;
  run.sm = static_cast<uint32_t>(grid.next % sm_count_);
  grid.next += count;
  grid.resident += count;
  return run;
}

void BlockQueue::drop_cancelled() {
  std::erase_if(grids_, [](const Entry& entry) { return entry.grid->cancelled(); });
  std::erase_if(runs_, [](const BlockRun& run) { return run.grid->cancelled(); });
}

}  // namespace heddle::software
