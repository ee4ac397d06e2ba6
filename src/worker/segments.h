#pragma once

#include <unordered_map>

#include "device/device.h"
#include "protocol/messages.h"
#include "worker/epoch.h"
#include "worker/host_part.h"

namespace heddle::worker {

// The memory that is mapped here, by segment number. Issuer's thread only.
class Segments {
 public:
  Segments(device::Context& context, Epoch& epoch) : context_(context), epoch_(epoch) {}

  // `memory` is not kept: the mapping holds what it needs.
  Status map(const protocol::MapSegment& segment, const Fd& memory);
  // The caller has made sure that nothing in flight uses it. kNotFound for one that is not mapped.
  Status unmap(uint64_t number);
  // All of the device's, the same way.
  Status unmap_device_segments();
  bool mapped(uint64_t number) const { return segments_.contains(number); }
  // Of the device's, what lies on the host.
  const HostPart& on_host() const { return on_host_; }
  // Whether the device has refused to map or to unmap something: it may be there still.
  bool uncertain() const { return uncertain_; }

 private:
  struct Range {
    uint64_t address;
    Bytes size;
    protocol::SegmentKind kind;
  };
  device::Context& context_;
  Epoch& epoch_;
  std::unordered_map<uint64_t, Range> segments_;
  HostPart on_host_;
  bool uncertain_ = false;
  Bytes room_;  // of these, what nothing is mapped for
};

}  // namespace heddle::worker
