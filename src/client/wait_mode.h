#pragma once

#include <atomic>

#include "core/spare_processors.h"

namespace heddle::client {

// How the program wants its threads to wait for devices (cudaSetDeviceFlags), for all devices alike.
inline std::atomic<WaitMode>& wait_mode() {
  static std::atomic<WaitMode> mode{WaitMode::kAuto};
  return mode;
}

}  // namespace heddle::client
