#pragma once

#include <string>

#include "daemon/registry.h"

namespace heddle::daemon {

// Whether a virtual device's task could go on in another worker, if its worker ended now, as the ring's control page
// says, which no program can write. A worker that lies there harms its own session only.

// What makes it impossible for as long as the worker lives; empty: nothing.
std::string lasting_obstacle(const VirtualDevice& device);
// The same, or what does just now: work under way, or variables that were written and are not saved yet.
std::string present_obstacle(const VirtualDevice& device);

// What the program's modules have in their variables, beside what they began with, lies in the worker that stays for
// the virtual device's next task, and is saved nowhere.
bool keeps_variables(const VirtualDevice& device);

}  // namespace heddle::daemon
