#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "policy/deadline/family.h"
#include "policy/dispatch/dispatch.h"

namespace heddle::policy {

struct DispatchEntry {
  std::string_view name;
  std::string_view argument;  // what follows a colon, as people call it; empty where there is none
  std::string_view description;
  Result<std::unique_ptr<Dispatch>> (*make)(std::string_view argument);  // for a device by itself
  // Of a deadline policy (deadline/), whose objects of all devices belong together.
  DeadlineFamily::Make deadline = nullptr;
  // Batch jobs' work is kept to a part of each device's SMs, which whoever starts workers sees to.
  bool bounds_batch = false;
};

// Every dispatch policy, in the order in which people see them; the first is what devices have unless
// something else is configured.
std::span<const DispatchEntry> dispatch_table();

// "las", "las:<n>": an entry as people write it.
std::string text_of(const DispatchEntry& entry);

// The entry of "tfs", "las:3". kNotFound where there is none of that name, kInvalidArgument for a wrong argument; both
// list what is known.
Result<const DispatchEntry*> find_dispatch(std::string_view text);

// One object, for one device. Errors as above.
Result<std::unique_ptr<Dispatch>> make_dispatch(std::string_view text);

}  // namespace heddle::policy
