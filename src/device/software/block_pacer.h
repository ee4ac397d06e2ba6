#pragma once

#include <map>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>
#include <vector>

#include "device/software/grid.h"
#include "device/software/model/copy_engines.h"
#include "device/software/model/pace.h"
#include "device/software/model/slots.h"
#include "device/software/model/turns.h"

// Keeps the kernels of one context to the pace of the device. Plain state; its owner locks.
//
// A launch joins the line for slots when its latency has passed. A block is computed as soon as it is placed, and
// leaves its slot when the time is over that the model gives it, counted from its modelled start. So nothing that the
// host is late with adds up, except where a block was computed later than it should have ended: that is overrun, and
// the block then ends when it was computed.
//
// Times of blocks are device time: the machine's clock where the device is shared block by block; a clock that runs
// during the context's own turns where it is time-sliced.
namespace heddle::software {

class BlockPacer {
 public:
  explicit BlockPacer(const Pace& pace) : pace_(pace) {}

  struct Ended {
    std::shared_ptr<Grid> grid;
    TimePoint at{};
  };
  struct Step {
    std::vector<BlockRun> placed;
    std::vector<Ended> ended;  // launches whose last block has left its slot
  };

  // The grid's operation says since when it may run.
  void launch(std::shared_ptr<Grid> grid);
  // The block of this run has been computed.
  void computed(const BlockRun& run, TimePoint now);
  // Forgets launches that are cancelled; step() gives their slots back.
  void cancel();

  // Does what is due. `slots` deals out the SMs, `turns` says when they are ours (null: always).
  void step(Slots& slots, Turns* turns, TimePoint now, Step& out);
  // Since when it has had a use for the device; nothing where no launch may run yet.
  std::optional<TimePoint> wanted_since(TimePoint now) const;
  // When step() has something to do next, if nothing else happens.
  std::optional<TimePoint> next() const;
  // The end of the last block that left, in the machine's time.
  TimePoint last_end() const { return last_end_; }

 private:
  struct Launch {
    std::shared_ptr<Grid> grid;
    TimePoint ready{};               // may join the line
    std::optional<TimePoint> began;  // first block, machine's time
    std::vector<Interval> late;      // when some block was late, without overlaps
    std::set<uint32_t> slots;
  };
  struct BlockEnd {
    TimePoint at{};  // device time
    uint64_t launch = 0;
    uint32_t slot = 0;
    friend bool operator>(const BlockEnd& a, const BlockEnd& b) { return a.at > b.at; }
  };
  // The two clocks as step() saw them last.
  struct Clocks {
    TimePoint machine{}, device{};
    bool running = true;
    TimePoint device_at(TimePoint now) const { return running ? device + (now - machine) : device; }
    TimePoint machine_at(TimePoint at) const { return machine - (device - at); }
  };

  static void add_overrun(Launch& launch, Interval late);
  void give_back(Slots& slots);
  void end_blocks(Slots& slots, Step& out);
  void join_line(Slots& slots, Turns* turns);
  void take_places(Slots& slots, Step& out);
  bool take_place(const Placement& placement, Step& out);

  const Pace pace_;
  Clocks clocks_;
  std::map<uint64_t, Launch> launches_;  // by number: in the order of handing over
  std::set<uint64_t> not_in_line_;
  std::priority_queue<BlockEnd, std::vector<BlockEnd>, std::greater<>> ends_;
  std::vector<Launch> cancelled_;
  TimePoint last_end_{};
};

}  // namespace heddle::software
