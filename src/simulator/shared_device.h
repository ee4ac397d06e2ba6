#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/device_model.h"
#include "core/units.h"

namespace heddle::simulator {

using JobIndex = uint32_t;

// One device of the simulated node and what is on it. Work has a length on a device without slowdown that nobody else
// uses, and moves on by what the device has for it:
//
//   kernels, concurrent     all at full speed while their warps fit into the device together, else each at
//                           device warps / sum of their warps
//   kernels, time-sliced    each at 1 / how many there are
//   copies                  each at 1 / how many there are: one engine, for the way that programs wait for
//
// and all of it divided by the device's slowdowns, and kernels by how much memory on the host slows them besides.
// Launches of their own cost nothing.
class SharedDevice {
 public:
  explicit SharedDevice(const DeviceModel& model);

  enum class Kind { kKernels, kCopy };
  // The job must have nothing here yet. `warps`: that its kernels keep resident, at least 1. `stretch`, from 1: how
  // many times as long they take because they reach memory on the host, or have a part of the SMs.
  void add(JobIndex job, Kind kind, Duration length, uint64_t warps, TimePoint now, double stretch = 1);
  // What of it was left to do, by the length that it was given.
  Duration remove(JobIndex job, TimePoint now);
  bool has(JobIndex job) const { return find(job) != works_.size(); }
  // Only so much of it is to be done now: the rest is left when it is removed.
  void cut(JobIndex job, Duration to, TimePoint now);

  struct End {
    TimePoint at;
    JobIndex job;
  };
  // What is done first, if nothing changes; ties go to the lower job.
  std::optional<End> next() const;

  // What of its length is left to do, a cut not counted.
  Duration left_of(JobIndex job, TimePoint now);
  // How long kernels of the job have been on the device.
  Duration busy_of(JobIndex job, TimePoint now);
  // How long a copy of it has been.
  Duration copied_of(JobIndex job, TimePoint now);
  // How long kernels were, in nanoseconds, of all jobs together.
  double busy_of_all(TimePoint now);
  // How long any kernels were.
  Duration busy(TimePoint now);

 private:
  struct Work {
    JobIndex job;
    Kind kind;
    double left;      // nanoseconds of its length
    double withheld;  // behind the cut
    uint64_t warps;
    double stretch;
    Duration on{};  // time that it has been here
  };
  size_t find(JobIndex job) const;
  void advance(TimePoint now);
  double rate(const Work& work) const;

  const double warps_;
  const bool concurrent_;
  const double slowdown_, copy_slowdown_;
  std::vector<Work> works_;
  TimePoint at_{};
  Duration busy_{};
  double busy_of_all_ = 0;
  uint64_t resident_ = 0;  // warps of all kernels here
  uint32_t kernels_ = 0, copies_ = 0;
};

}  // namespace heddle::simulator
