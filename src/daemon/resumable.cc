#include "daemon/resumable.h"

#include "protocol/control_page.h"

namespace heddle::daemon {

using protocol::Obstacle;

std::string lasting_obstacle(const VirtualDevice& device) {
  if (!device.control) return "its ring has no control page";
  switch (device.control->log().obstacle) {
    case Obstacle::kNone:
      return "";
    case Obstacle::kDeviceMalloc:
      return "its kernels allocate memory by themselves (device malloc), which dies with the worker";
    case Obstacle::kVariables:
      return stringf("its modules have more variables than the %s that are saved",
                     to_string(protocol::ControlPage::kVariableBytes).c_str());
    case Obstacle::kModules:
      return stringf("it has loaded more than %lu modules",
                     static_cast<unsigned long>(protocol::ControlPage::kMostModules));
    case Obstacle::kAddresses:
      return "it may have the addresses of its modules' variables or functions, which another worker of this device "
             "would have elsewhere (variables_stay)";
    case Obstacle::kNotSaved:
      break;
  }
  return "the device did not let its modules' variables be saved";
}

std::string present_obstacle(const VirtualDevice& device) {
  std::string lasting = lasting_obstacle(device);
  if (!lasting.empty()) return lasting;
  const protocol::LogState log = device.control->log();
  if (log.computes()) return "work of the program's was under way";
  if (!log.variables_are_saved()) return "its modules' variables were written and not saved yet";
  return "";
}

bool keeps_variables(const VirtualDevice& device) {
  if (!device.control) return false;
  const protocol::LogState log = device.control->log();
  return log.variables_written != 0 && (!log.variables_are_saved() || log.obstacle != Obstacle::kNone);
}

}  // namespace heddle::daemon
