#pragma once

#include <chrono>
#include <cstdint>

#include "core/clock.h"
#include "core/ids.h"
#include "core/units.h"
#include "daemon/config.h"
#include "daemon/event_loop.h"
#include "daemon/events.h"
#include "daemon/keepers.h"
#include "daemon/pinned_pool.h"
#include "daemon/registry.h"

namespace heddle::daemon {

// The pinned part of swap space, next to GPUs: what segments give up stays pinned, and mapped in the keeper that made
// it, for the next segment of its size, since pinning takes ten times as long as copying (HARDWARE.md, p8). With
// heddled all of it goes.
//
// How much: at most [swap] pinned, and no more than [swap] host leaves beside what is in use; what nobody has used for
// a minute goes.
//
// It has other programs' bytes in it. So it is used for nothing but copies out of segments of exactly its size, which
// write all of it before anything of it is read; and only memory comes here that no worker ever was given, whose
// programs could still have it mapped. That is what has a number (Segment::Swap::mapping): what tasks run with on the
// host has none, and neither has what was there before a restart of heddled.
class SwapSpace {
 public:
  static constexpr Duration kKeptUnused = std::chrono::minutes(1);

  SwapSpace(EventLoop& loop, const Clock& clock, Keepers& keepers, const SwapConfig& config, Registry& registry)
      : loop_(loop), clock_(clock), keepers_(keepers), config_(config), registry_(registry) {}

  // Gives a segment that leaves the GPU memory that is pinned already. False: none fits.
  bool reuse(DeviceId gpu, Segment& segment);
  // The same of memory that a keeper was asked for with number `mapping`, new_mapping()'s.
  uint64_t new_mapping() { return ++last_mapping_; }
  static void give(Segment& segment, MemoryAnswered made);
  // Gives up what is too much beside what is in use (Registry::swapped): to be called when that is more, before memory
  // is made for it.
  void limit_kept();
  // What the segment has there is wanted no more, or what a keeper has made. Kept, unless a copy is under way: a part
  // of that may still run.
  void release(Segment& segment);
  void release(MemoryAnswered made);

 private:
  void keep(PinnedPool::Piece piece);
  Bytes most() const;
  void give_up(const PinnedPool::Pieces& pieces);
  void give_up_unused();

  EventLoop& loop_;
  const Clock& clock_;
  Keepers& keepers_;
  const SwapConfig& config_;
  Registry& registry_;
  PinnedPool pool_;
  EventLoop::Timer unused_;
  uint64_t last_mapping_ = 0;
};

}  // namespace heddle::daemon
