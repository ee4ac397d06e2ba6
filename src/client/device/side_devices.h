#pragma once

#include <vector>

#include "client/device/add_only_list.h"
#include "client/device/streams.h"

// A device's side devices, and what their work must follow of the device's own (stream/apart.h).
namespace heddle::client {

class VirtualDevice;

// The end of what a stream was given.
struct Mark {
  uint32_t stream = 0;
  uint64_t sequence = 0;
  bool operator==(const Mark&) const = default;
};

// Of a device, or of a side device of one. Any thread: the functions take the ring's lock.
class SideDevices {
 public:
  SideDevices(RingPort& ring, Streams& streams) : ring_(ring), streams_(streams) {}

  // Of a home; one side device after the other is added, and none is taken out.
  void add(VirtualDevice* side) { side_devices_.add(side); }
  bool any() const { return side_devices_.size() != 0; }
  // The newest first.
  template <class Body>
  void for_each(Body&& body) const {
    for (uint32_t i = side_devices_.size(); i-- > 0;) body(*side_devices_[i]);
  }

  // Around an operation of a task apart at home.
  void begin_inside();
  void end_inside();
  // Whether a thread is in one. Under the lock.
  bool has_insiders() const { return insiders_ != 0; }
  // Under the lock: a thread that is in none has appended a record to the legacy default stream.
  void published_outside(uint64_t sequence) { outside_last_ = sequence; }
  // What of the home's blocking streams is not done yet, but for the operations of tasks apart.
  std::vector<Mark> outside_work();

  // Of a side device: whether it must wait for that; not where it does already.
  bool must_follow(const std::vector<Mark>& marks);
  bool reached(const std::vector<Mark>& marks) const;

 private:
  void look_outside();

  RingPort& ring_;
  Streams& streams_;
  AddOnlyList<VirtualDevice, protocol::kMaxDevices> side_devices_;
  uint64_t inside_last_ = 0, outside_last_ = 0;  // of the legacy default stream: by tasks apart, by all others
  uint32_t insiders_ = 0;                        // threads in an operation of a task apart
  std::vector<Mark> followed_;                   // of a side device: what it waits for already
};

}  // namespace heddle::client
