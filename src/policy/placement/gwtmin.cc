#include "policy/placement/gwtmin.h"

#include <algorithm>

#include "policy/text.h"

namespace heddle::policy {

Placed GWtMin::choose(const Request& /*request*/, std::span<const DeviceId> fitting, const Pool& pool) const {
  const auto before = [&](DeviceId a, DeviceId b) {
    const uint64_t of_a = pool.spec(a).weight, of_b = pool.spec(b).weight;
    const uint64_t load_a = (jobs_on(a) + 1) * of_b, load_b = (jobs_on(b) + 1) * of_a;  // by the other's weight
    return load_a != load_b ? load_a < load_b : of_a > of_b;
  };
  const DeviceId best = *std::min_element(fitting.begin(), fitting.end(), before);
  return {best, text("fewest jobs for its weight on ", best, " (", jobs_on(best), " there, weight ",
                     pool.spec(best).weight, ")")};
}

}  // namespace heddle::policy
