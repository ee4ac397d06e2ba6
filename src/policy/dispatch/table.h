#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/result.h"
#include "policy/deadline/family.h"
#include "policy/dispatch/dispatch.h"

namespace heddle::policy {

struct DispatchEntry {
  std::string_view name;
  std::string_view description;
  std::unique_ptr<Dispatch> (*make)();  // for a device by itself
  // Of a deadline policy (deadline/), whose objects of all devices belong together.
  DeadlineFamily::Make deadline = nullptr;
};

// Every dispatch policy, in the order in which people see them; the first is what devices have unless
// something else is configured.
std::span<const DispatchEntry> dispatch_table();

// The entry of that name. kNotFound where there is none; the error lists what is known.
Result<const DispatchEntry*> find_dispatch(std::string_view name);

// One object, for one device. kNotFound for an unknown name; the error lists what is known.
Result<std::unique_ptr<Dispatch>> make_dispatch(std::string_view name);

}  // namespace heddle::policy
