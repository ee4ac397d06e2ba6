#include "policy/placement/balancer.h"

#include "policy/placement/reasons.h"
#include "policy/text.h"

namespace heddle::policy {

Answer Balancer::place(const Request& request, const Pool& pool) const {
  if (const auto own = seats_.of(request)) {
    if (pool.fits(request, *own)) return Placed{*own, text("the job is assigned to device ", *own)};
    return NotNow{text("the job is assigned: ", why_no_memory(request, {&*own, 1}, pool))};
  }
  const auto devices = candidates(request.model, pool);
  std::vector<DeviceId> fitting;
  fitting.reserve(devices.size());
  for (const DeviceId device : devices) {
    if (request.closed != device && pool.fits(request, device)) fitting.push_back(device);
  }
  if (fitting.empty()) return NotNow{why_no_memory(request, devices, pool)};
  return choose(request, fitting, pool);
}

}  // namespace heddle::policy
