#include "policy/placement/gmin.h"

#include <algorithm>

#include "policy/text.h"

namespace heddle::policy {

Placed GMin::choose(const Request& /*request*/, std::span<const DeviceId> fitting, const Pool& /*pool*/) const {
  const DeviceId best = *std::min_element(fitting.begin(), fitting.end(),
                                          [&](DeviceId a, DeviceId b) { return jobs_on(a) < jobs_on(b); });
  return {best, text("fewest jobs on ", best, " (", jobs_on(best), ")")};
}

}  // namespace heddle::policy
