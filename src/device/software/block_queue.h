#pragma once

#include <deque>
#include <list>
#include <optional>

#include "device/software/grid.h"

// Which blocks the host's threads run next. Plain state; its owner locks.
//
// Blocks come in two ways. A grid that was added deals its blocks out as threads ask, a few at a time while many are
// left, grids of equal priority in turns, never more at once than the device holds. A run that was added is a block
// that already has its place. Blocks that did not finish in their turn stand in a queue; threads take from it and begin
// new blocks alternately, so that blocks that spin for one another all progress.
namespace heddle::software {

class BlockQueue {
 public:
  // `threads`: how many will take from it; `sm_count`: blocks are spread over that many SMs.
  BlockQueue(uint32_t threads, uint32_t sm_count) : threads_(threads), sm_count_(sm_count) {}

  // Lower priorities go first.
  void add_grid(std::shared_ptr<Grid> grid, int priority);
  // A placed block, or one that did not finish in its turn.
  void add_run(BlockRun run);
  std::optional<BlockRun> take();
  // Takes out everything of grids that are cancelled.
  void drop_cancelled();

 private:
  struct Entry {
    std::shared_ptr<Grid> grid;
    int priority = 0;
  };
  std::optional<BlockRun> deal();
  BlockRun cut(Grid& grid) const;

  uint32_t threads_, sm_count_;
  std::list<Entry> grids_;  // that have blocks to deal out; by priority, then in turns
  std::deque<BlockRun> runs_;
  bool deal_next_ = true;
};

}  // namespace heddle::software
