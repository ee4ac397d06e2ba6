#pragma once

#include "client/device/device_limits.h"
#include "client/device/device_memory.h"
#include "client/device/device_task.h"
#include "client/device/host_calls.h"
#include "client/device/recent_launches.h"
#include "client/device/ring_port.h"
#include "client/device/side_devices.h"
#include "client/device/streams.h"
#include "client/device/textures.h"

// One device as the program sees it, or a side device of one (stream/apart.h). It is made of parts:
//
//   ring       records, payloads, waiting, what went wrong
//   segments   what the program holds, and the device's budget
//   task       when what the ring says is declared to heddled, and begun
//   memory     buffers in the segments
//   streams, events, textures, limits, host calls, side devices, the last launches
//
// Thread safety: any thread. The ring's lock guards all the parts but the waiting (ring_port.h); parts take it
// themselves where they do not say "under the lock". A device's lock is taken before its side devices', and a session's
// behind all of them.
namespace heddle::client {

class VirtualDevice {
 public:
  using Lock = RingPort::Lock;
  using Begin = DeviceTask::Begin;

  // `memory` is the ring; [base, base + bytes) is this device's part of the window. A side device has a `home`.
  VirtualDevice(Session& session, uint32_t index, protocol::RingMemory memory, uint64_t base, uint64_t bytes,
                VirtualDevice* home = nullptr);
  VirtualDevice(const VirtualDevice&) = delete;
  VirtualDevice& operator=(const VirtualDevice&) = delete;

  RingPort& ring() { return ring_; }
  const RingPort& ring() const { return ring_; }
  DeviceTask& task() { return task_; }
  DeviceMemory& memory() { return memory_; }
  Streams& streams() { return streams_; }
  Events& events() { return events_; }
  Textures& textures() { return textures_; }
  DeviceLimits& limits() { return limits_; }
  HostCalls& host_calls() { return host_calls_; }
  RecentLaunches& recent_launches() { return recent_launches_; }
  SideDevices& side_devices() { return side_devices_; }
  const SideDevices& side_devices() const { return side_devices_; }

  [[nodiscard]] Lock lock() { return ring_.lock(); }
  Session& session() const { return ring_.session(); }
  uint32_t index() const { return ring_.index(); }
  const DeviceModel& model() const { return ring_.model(); }
  // What went wrong on the device or one of its side devices, sticky.
  Done failure() const { return ring_.failure(); }

  bool is_side_device() const { return ring_.is_side_device(); }
  // The device that the program means.
  VirtualDevice& home() { return home_ ? *home_ : *this; }
  const VirtualDevice& home() const { return home_ ? *home_ : *this; }

  // A slot of streams(), whose share of the driver's memory is charged first.
  Answer<uint32_t> open_stream(bool non_blocking, int priority);

  // --- records: under the lock ---
  Done prepare(Begin begin) { return task_.prepare(begin); }
  template <class Record>
  Answer<Record*> reserve(protocol::RecordType type, uint32_t stream, size_t trailing_bytes = 0) {
    return task_.reserve<Record>(type, stream, trailing_bytes);
  }
  // Of a record that is work of the stream. Returns its sequence.
  uint64_t publish(uint32_t stream) {
    const uint64_t sequence = ring_.publish_work(stream);
    streams_.at(stream).last = sequence;
    if (side_devices_.has_insiders()) [[unlikely]]
      published_meanwhile(stream, sequence);
    return sequence;
  }
  // A record that is a header with `a` and `b` only.
  Answer<uint64_t> append_plain(protocol::RecordType type, uint32_t stream, uint64_t a = 0, uint64_t b = 0);

  // --- waiting: without the lock ---
  Done start_pending() { return task_.start_pending(); }
  Done synchronize_stream(uint32_t stream, uint64_t sequence) { return task_.synchronize_stream(stream, sequence); }
  Done synchronize() { return task_.synchronize(); }
  // Waits for the side devices, too.
  Done synchronize_with_side_devices();

  // Frees all memory; the variables of the program's modules begin anew, as cudaDeviceReset has it.
  Done reset();
  // Begins the side device's task beside the home's, which begins with it where it has not; false: heddled has no space
  // for both at once, and nothing has happened.
  Answer<bool> begin_apart(VirtualDevice& side);

 private:
  // A record was published while a thread is in an operation of a task apart.
  void published_meanwhile(uint32_t stream, uint64_t sequence);

  VirtualDevice* const home_;  // of a side device
  RingPort ring_;
  DeviceSegments segments_;
  DeviceTask task_;
  DeviceMemory memory_;
  Streams streams_;
  Events events_;
  Textures textures_;
  DeviceLimits limits_;
  HostCalls host_calls_;
  SideDevices side_devices_;
  RecentLaunches recent_launches_;
};

}  // namespace heddle::client
