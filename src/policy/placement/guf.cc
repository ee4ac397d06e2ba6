#include "policy/placement/guf.h"

#include <algorithm>

#include "policy/text.h"

namespace heddle::policy {

// The new job's own utilization is the same wherever it goes.
Placed Guf::choose(const Request& request, std::span<const DeviceId> fitting, const Pool& pool) const {
  const auto known = expected(request.job);
  if (!known) return Rtf::choose(request, fitting, pool);
  const auto before = [&](DeviceId a, DeviceId b) {
    if (utilization(a) != utilization(b)) return utilization(a) < utilization(b);
    return load_with(a, known->busy) < load_with(b, known->busy);
  };
  const DeviceId best = *std::min_element(fitting.begin(), fitting.end(), before);
  return {best, text("least utilization expected on ", best, " (", utilization(best), " thousandths of it)")};
}

}  // namespace heddle::policy
