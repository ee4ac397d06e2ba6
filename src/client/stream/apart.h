#pragma once

#include <map>
#include <mutex>

#include "client/device/virtual_device.h"

// Tasks that run apart from the rest of their device's work, on another physical device, because nothing tells the two
// from tasks one behind the other: heddle cc has proved that nobody else has a pointer to the task's buffers, and the
// code of its kernels that they touch nothing but those (include/heddle/task.h).
//
//   program's device (home)      its ring: everything else, and the first task apart       one physical device
//     side devices               a ring each: further tasks apart, one at a time           others
//
// A side device is a virtual device that the program does not see; its buffers count as the home's. What hides it:
// - It is used only if heddled grants it at once, together with the home's own task: tasks apart never wait for each
//   other's devices. Else the task runs at home.
// - Order is given up between tasks apart alone. What else the program has done in the home's blocking streams, a side
//   device waits for before each operation (enter), and what it does there next waits for the side devices
//   (join_side_devices).
// - cudaDeviceSynchronize and cudaDeviceReset span the side devices, a fault in one is the device's.
namespace heddle::client {

// Thread-safe.
class ApartTasks {
 public:
  // A task apart of `home` begins. Its side device, which is its own until close(); null where there is no other task
  // apart to run beside, or no side device.
  VirtualDevice* open(uint64_t task, VirtualDevice& home);
  // The side device was of no use: the task runs at home.
  void stay_home(uint64_t task, VirtualDevice& home);
  void close(uint64_t task);

  // Around an operation of the task, by its thread. Where the thread has another current device than the task, nothing.
  void enter(uint64_t task);
  static void leave();

 private:
  VirtualDevice* idle_side_device(VirtualDevice& home) const;

  std::mutex mutex_;
  std::map<uint64_t, VirtualDevice*> where_;  // by task: the device or side device of its operations
};

ApartTasks& apart_tasks();

}  // namespace heddle::client
