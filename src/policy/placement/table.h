#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/result.h"
#include "policy/placement/placement.h"

namespace heddle::policy {

struct PlacementEntry {
  std::string_view name;
  std::string_view argument;  // what follows the colon, as people call it; empty where the policy takes none
  std::string_view description;
  Result<std::unique_ptr<Placement>> (*make)(std::string_view argument);
};

// Every placement policy, in the order in which `heddle policies` lists them.
std::span<const PlacementEntry> placement_table();

// "mgb-warps", "cg:3". kNotFound for an unknown name, kInvalidArgument for a wrong argument; both list what is known.
Result<std::unique_ptr<Placement>> make_placement(std::string_view text);

}  // namespace heddle::policy
