#pragma once

#include <memory>
#include <optional>

#include "device/software/block_pacer.h"
#include "device/software/copy_pacer.h"

namespace heddle::software {

// Keeps one context to the pace of its device, together with all other contexts on the device's board.
//
// Thread safety: attach() and detach() on the thread that stays as long as the context; bell(), ring() and sleep() from
// any thread; everything else under the owner's lock.
class Pacer {
 public:
  // Null if the model asks for no pace. `sms` as Board::attach has it.
  static Result<std::unique_ptr<Pacer>> open(const DeviceModel& model, const Fd& board, uint32_t sms = 0);

  // Joins the board. kLimitExceeded if it is full.
  Status attach();
  void detach();

  BlockPacer& blocks() { return blocks_; }
  CopyPacer& copies() { return copies_; }
  bool paces_kernels() const { return paces_kernels_; }

  struct Step {
    BlockPacer::Step blocks;
    std::vector<CopyPacer::Ended> copies;
  };
  // Does what is due by now. Fails if the board cannot be locked: nothing can go on then.
  Result<Step> step(TimePoint now);
  // When to step again, if nothing happens before.
  TimePoint next() const { return next_; }

  uint32_t bell() const { return shared_.bell(); }
  void ring() { shared_.ring(shared_.self()); }
  void sleep(uint32_t seen, TimePoint until) { shared_.sleep(seen, until); }

 private:
  Pacer(const DeviceModel& model, Board shared, uint32_t sms);
  Status step_time_sliced(BoardLock& shared, TimePoint now, Step& step);
  void plan(TimePoint now, bool waiting, std::optional<TimePoint> rotation);

  Board shared_;
  const uint32_t sms_;
  // Time-sliced, each context has all SMs to itself during its turns: a board of its own deals them out.
  std::optional<Board> own_;
  Duration slice_{};
  bool paces_kernels_ = false;
  BlockPacer blocks_;
  CopyPacer copies_;
  TimePoint next_{}, last_sweep_{};
};

}  // namespace heddle::software
