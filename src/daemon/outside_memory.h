#pragma once

#include <map>

#include "daemon/tasks.h"

namespace heddle::daemon {

// GPU memory that processes outside of heddled use. Found by what is missing: what a device's capacity comprises, less
// what its keeper says is free, less what heddled's own processes have. The scheduler does not promise it while it is
// used; a promise that was given before stands.
class OutsideMemory {
 public:
  OutsideMemory(Shared& shared, Tasks& tasks, const SegmentStore& segments)
      : shared_(shared), tasks_(tasks), segments_(segments) {}

  // From the device's keeper: `free` bytes of the whole GPU are used by nobody.
  void reported(DeviceId device, Bytes free);

 private:
  Bytes used_outside(DeviceId device, Bytes free) const;
  Bytes own(DeviceId device) const;

  Shared& shared_;
  Tasks& tasks_;
  const SegmentStore& segments_;
  std::map<DeviceId, Bytes> last_;  // what the last report came to
};

}  // namespace heddle::daemon
