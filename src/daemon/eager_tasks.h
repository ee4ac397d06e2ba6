#pragma once

#include "daemon/task_swaps.h"

namespace heddle::daemon {

// The part of Tasks that launches tasks which fit nowhere with a part of their memory on a device and the rest on the
// host, at the same addresses (policy/eager.h says who and where), and that has the rest promoted: copied to the device
// as memory returns there. Without state of its own.
//
// Which segments: those that the program declared first go to the device, as far as they fit; the rest counts in swap
// space. To promote some, the task is suspended as an idle one is: its worker comes to a cut and ends, the memory is
// copied, and another worker goes on. So it is done only where at least half of what lies on the host fits: a task is
// disturbed a few times at most. A copy that fails leaves the memory where it is, for good.
class EagerTasks {
 public:
  explicit EagerTasks(Tasks& tasks) : tasks_(tasks), shared_(tasks.shared_) {}

  // Once a turn, behind the scheduler's decisions, which this takes again. Nothing where it is switched off.
  void launch();
  // In a turn, before the scheduler decides, so that memory which has returned is an eager task's before it is that of
  // requests that wait, and behind it: has tasks suspended for whose memory there is place, and promotes that of those
  // that are.
  void promote();

  // The task was granted so.
  void put_on_host(Session& session, VirtualDevice& device, const policy::Decision& granted);
  // Whether it was promoted, or was to be.
  bool memory_moved(const MemoryMoved& moved);

 private:
  bool launch_one();
  Bytes swap_free() const;
  bool may_promote(const Session& session, const VirtualDevice& device) const;
  void begin_to_promote(Session& session, VirtualDevice& device);
  void promote_suspended(Session& session, VirtualDevice& device);
  void keep_on_host(Session& session, VirtualDevice& device, Bytes bytes, const Error& why);

  Tasks& tasks_;
  Shared& shared_;
};

}  // namespace heddle::daemon
