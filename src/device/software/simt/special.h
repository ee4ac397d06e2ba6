#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::software {

// The special registers that can be read. Those of three dimensions are followed by their y and z.
enum class Special : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNwarpId,
  kSmId,
  kNsmId,
  kGridId,
  kLaneMaskEq,
  kLaneMaskLt,
  kLaneMaskLe,
  kLaneMaskGt,
  kLaneMaskGe,
  kClock,
  kClockHi,
  kClock64,
  kGlobalTimer,
  kGlobalTimerLo,
  kGlobalTimerHi,
  kDynamicShared,
  kTotalShared,
  kGridWorkspaceHigh,  // where grid-wide synchronisation of cooperative groups counts arrivals
  kGridWorkspaceLow,
};

// By its PTX name ("%tid.x"); none if it is not supported.
std::optional<Special> find_special(std::string_view name);

}  // namespace heddle::software
