#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "client/device/virtual_device.h"
#include "client/memory/host_memory.h"
#include "client/memory/managed_hints.h"
#include "client/memory/managed_memory.h"
#include "client/registry.h"
#include "client/thread_place.h"

// Everything that the library knows, for the life of the process. Made at the first use, never destroyed.
//
// The rules of this room, which runs inside programs that know nothing of it:
// - only CUDA's names are visible (symbols.map, checked by a test), libstdc++ and libgcc are linked in and hidden;
// - no exception leaves an exported function (answer());
// - no static constructors, and no destructors at exit: nothing here waits for a daemon that may be dead;
// - it never ends the program's process: every failure is a CUDA code, and at most one line on stderr;
// - it never opens the driver.
namespace heddle::client {

class Runtime {
 public:
  Registry registry;
  ManagedHints managed_hints;

  // The session; connects at the first call. cudaErrorInitializationError in a child of fork().
  Answer<Session*> session();
  // Whether it is connected already.
  bool connected() const { return session_.load(std::memory_order_acquire) != nullptr; }
  // Virtual device `index`; opens its ring at the first call. cudaErrorInvalidDevice for one that does not exist.
  Answer<VirtualDevice*> device(int index);
  // cudaSetDevice's choice; in an operation of a task apart, its side device.
  Answer<VirtualDevice*> current_device();
  // Another side device of an open device; null where there is none. By one thread at a time.
  VirtualDevice* open_side_device(VirtualDevice& home);
  // The device if it was opened already, else null.
  VirtualDevice* opened(uint32_t index) const { return devices_[index].load(std::memory_order_acquire); }
  HostMemory& host_memory() { return *host_memory_; }
  // What of managed memory lives on the device; the rest is host memory. Valid with the session.
  ManagedMemory& managed_memory() { return *managed_memory_; }

  // Which device of the window an address belongs to; null for host memory and foreign addresses.
  VirtualDevice* device_of(uint64_t address) const;
  bool in_window(uint64_t address) const;

  // Records that follow may use the new pinned segment: workers that run already have to see it first.
  Done announce_host_segment(uint64_t number);
  // Waits for everything on all devices.
  Done synchronize_all();
  void drain_prints();
  void forked() { in_fork_child_ = true; }

 private:
  Done connect();
  Answer<VirtualDevice*> open(uint32_t index, VirtualDevice* home = nullptr);

  std::atomic<Session*> session_{nullptr};
  std::array<std::atomic<VirtualDevice*>, protocol::kMaxDevices> devices_{};
  std::atomic<bool> in_fork_child_{false};
  uint64_t bytes_per_device_ = 0;
  uint32_t side_devices_ = 0;       // that there may be, numbered behind the devices
  uint32_t side_devices_open_ = 0;  // under ApartTasks' lock
  std::unique_ptr<HostMemory> host_memory_;
  std::unique_ptr<ManagedMemory> managed_memory_;
  std::mutex mutex_;  // for opening
  Done open_result_;  // of the session: tried once
  bool tried_ = false;
};

Runtime& runtime();

}  // namespace heddle::client
