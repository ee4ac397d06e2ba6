#pragma once

#include <optional>
#include <string>

namespace heddle {

inline constexpr double kLeastWeight = 0.001;  // weights count in such steps
inline constexpr double kLeastLimit = 0.01;    // less is shorter than the kernels that would have to end in it

struct WrongShare {
  const char* key;   // "weight", "share" or "limit"
  std::string text;  // names the value and what is allowed
};

// What is wrong, if anything is, with what a job asks for of a device's time: its weight against other jobs, the share
// that it gets while it has work and the limit that it never exceeds, both as parts of the device.
std::optional<WrongShare> wrong_share(double weight, double share, double limit);

}  // namespace heddle
