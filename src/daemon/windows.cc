#include "daemon/windows.h"

#include <algorithm>

namespace heddle::daemon {

std::vector<protocol::Window> offered_windows(const Config& config, const Registry& registry) {
  std::vector<protocol::Window> windows = config.windows;
  for (const DeviceState& device : registry.devices) {
    if (!device.window) continue;
    const auto found = std::find_if(windows.begin(), windows.end(), [&](const protocol::Window& each) {
      return each.base == device.window->base && each.device_bytes == device.window->device_bytes &&
             each.host_bytes == device.window->host_bytes;
    });
    if (found != windows.end()) std::rotate(windows.begin(), found, found + 1);
  }
  return windows;
}

}  // namespace heddle::daemon
