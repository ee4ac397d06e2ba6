#pragma once

#include <memory>
#include <ostream>
#include <vector>

#include "device/device.h"

namespace heddle::conformance {

// A device that the suite runs on, as far as the device interface leaves its making to others.
class Target {
 public:
  virtual ~Target() = default;
  // A context on the device; several share it. It lives no longer than the target.
  virtual Result<std::unique_ptr<device::Context>> open(device::PrintSink print) = 0;
  // The window of addresses that contexts were given, and memory to map there; sizes in steps of 2 MiB.
  virtual uint64_t window_base() const = 0;
  virtual uint64_t window_bytes() const = 0;
  virtual Result<Fd> allocate(Bytes size) = 0;
  virtual const DeviceModel& model() const = 0;

  // What a device can do only where each context has a process of its own, as workers do; tests/gpu shows it there.
  // A context that is destroyed ends its kernels.
  virtual bool ends_kernels() const { return true; }
  // One context's fault leaves the others of the process alone.
  virtual bool isolates_contexts() const { return true; }
  // Kernels can use all memory of the process (heterogeneous memory management), so that a wild pointer into it works.
  virtual bool reaches_host_memory() const { return false; }
};

struct TargetKind {
  const char* name;
  std::unique_ptr<Target> (*make)();  // null: the machine has no such device, the tests are skipped
  bool apart = false;                 // completions are taken on a thread of their own, as workers do it
};

// How test reports show it.
inline void PrintTo(const TargetKind& kind, std::ostream* out) {
  *out << kind.name;
}

// Every kind of device that this build knows. Another one is added to targets.cc.
std::vector<TargetKind> targets();

}  // namespace heddle::conformance
