#include "policy/placement/schedgpu.h"

#include "policy/placement/reasons.h"
#include "policy/text.h"

namespace heddle::policy {

std::span<const DeviceId> SchedGpu::candidates(size_t model, const Pool& pool) const {
  return pool.devices_of(model).first(1);
}

Answer SchedGpu::place(const Request& request, const Pool& pool) const {
  const auto devices = candidates(request.model, pool);
  if (!pool.fits(request, devices.front())) return NotNow{why_no_memory(request, devices, pool)};
  return Placed{devices.front(), text("fits on ", devices.front(), " (", pool.free(devices.front()),
                                      " free), the one device this policy uses")};
}

}  // namespace heddle::policy
