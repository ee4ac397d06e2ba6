#include "core/device_share.h"

#include <cmath>

#include "core/result.h"

namespace heddle {

std::optional<WrongShare> wrong_share(double weight, double share, double limit) {
  if (!(weight >= kLeastWeight) || !std::isfinite(weight))
    return WrongShare{"weight", stringf("weight %g: a job's weight is at least %g", weight, kLeastWeight)};
  if (!(limit >= kLeastLimit && limit <= 1))
    return WrongShare{"limit", stringf("limit %g: it is a part of the device, from %g to 1", limit, kLeastLimit)};
  if (!(share >= 0 && share <= 1))
    return WrongShare{"share", stringf("share %g: it is a part of the device, from 0 to 1", share)};
  if (share > limit)
    return WrongShare{"share", stringf("share %g is above limit %g, which the job is never to exceed", share, limit)};
  return {};
}

}  // namespace heddle
