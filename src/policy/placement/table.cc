#include "policy/placement/table.h"

#include "policy/placement/cg.h"
#include "policy/placement/gmin.h"
#include "policy/placement/grr.h"
#include "policy/placement/guf.h"
#include "policy/placement/gwtmin.h"
#include "policy/placement/mgb_sm.h"
#include "policy/placement/mgb_warps.h"
#include "policy/placement/rtf.h"
#include "policy/placement/sa.h"
#include "policy/placement/schedgpu.h"
#include "policy/text.h"

namespace heddle::policy {
namespace {

using Made = Result<std::unique_ptr<Placement>>;

template <class Policy, auto... options>
Made make(std::string_view /*argument*/) {
  return std::make_unique<Policy>(options...);
}

Made make_cg(std::string_view argument) {
  const auto ratio = count_in(argument);
  if (!ratio)
    return fail(ErrorCode::kInvalidArgument, "cg takes a number of jobs a device, at least 1; write it like cg:3");
  return std::make_unique<Cg>(*ratio);
}

constexpr PlacementEntry kTable[] = {
    {"sa", "", "a job has a device of its own for its lifetime", make<Sa>},
    {"cg", "ratio", "round robin, at most <ratio> jobs a device; knows nothing of memory, so jobs may fail", make_cg},
    {"schedgpu", "", "memory decides, on the first device only", make<SchedGpu>},
    {"mgb-sm", "", "first device with the memory and room on its SMs for every block", make<MgbSm>},
    {"mgb-warps", "", "of the devices with the memory, the one with the fewest warps in use", make<MgbWarps>},
    {"grr", "", "jobs are assigned to the devices in turn and wait for memory there", make<Grr>},
    {"gmin", "", "jobs are assigned to the device with the fewest jobs", make<GMin>},
    {"gwtmin", "", "jobs are assigned to the device with the fewest jobs for its speed", make<GWtMin>},
    {"rtf", "", "jobs are assigned where least work is expected to be left, by what jobs of their kind used",
     make<Rtf>},
    {"guf", "", "jobs are assigned so that those that use their device much are kept apart", make<Guf>},
    {"guf:cpu", "", "as guf, by the processor time of programs and not by how long they were there", make<Guf, true>},
};

std::string known() {
  std::string names;
  for (const PlacementEntry& entry : kTable) {
    append(names, names.empty() ? "" : ", ", entry.name);
    if (!entry.argument.empty()) append(names, ":<", entry.argument, ">");
  }
  return names;
}

}  // namespace

std::span<const PlacementEntry> placement_table() {
  return kTable;
}

Result<std::unique_ptr<Placement>> make_placement(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view argument = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  const auto wrong = [&](ErrorCode code, std::string_view what) {
    return fail(code, "placement policy '%.*s': %.*s; known policies: %s", static_cast<int>(text.size()), text.data(),
                static_cast<int>(what.size()), what.data(), known().c_str());
  };
  for (const PlacementEntry& entry : kTable) {
    if (entry.name == text && entry.argument.empty()) return entry.make("");
  }
  for (const PlacementEntry& entry : kTable) {
    if (entry.name != name) continue;
    if (entry.argument.empty() && colon != std::string_view::npos)
      return wrong(ErrorCode::kInvalidArgument, "it takes no such argument");
    auto made = entry.make(argument);
    if (!made) return wrong(made.error().code, made.error().text);
    return made;
  }
  return wrong(ErrorCode::kNotFound, "there is none of that name");
}

}  // namespace heddle::policy
