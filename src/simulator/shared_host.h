#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "core/units.h"
#include "simulator/shared_device.h"

namespace heddle::simulator {

// The host's processors. Jobs that compute there share them evenly, each with one of them at most.
//
// All of them move on at the same rate, so that one number says how far: whoever has been here since the beginning has
// computed for so long, and each is done when that has grown by its length.
class SharedHost {
 public:
  // 0: as many as jobs want, and nothing is kept here.
  explicit SharedHost(uint32_t processors) : processors_(processors) {}

  bool has_limit() const { return processors_ != 0; }
  // It computes for so long where it has a processor to itself. Ties go to who came first.
  void add(JobIndex job, Duration length, TimePoint now);
  // When somebody is done next, if nothing changes.
  std::optional<TimePoint> next() const;
  // Who that is; it leaves. Somebody must be here.
  JobIndex take(TimePoint now);
  // Changes with who is here.
  uint64_t version() const { return version_; }

 private:
  struct Work {
    double done_at;  // nanoseconds, as computed_ counts
    uint64_t number;
    JobIndex job;
    bool operator<(const Work& other) const {
      return done_at != other.done_at ? done_at > other.done_at : number > other.number;
    }
  };
  double rate() const;
  void advance(TimePoint now);

  uint32_t processors_;
  std::priority_queue<Work> works_;
  double computed_ = 0;
  TimePoint at_{};
  uint64_t version_ = 0;
};

}  // namespace heddle::simulator
