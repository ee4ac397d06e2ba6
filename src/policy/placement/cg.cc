#include "policy/placement/cg.h"

#include <algorithm>

#include "policy/text.h"

namespace heddle::policy {

Answer Cg::place(const Request& request, const Pool& pool) const {
  if (const auto own = seats_.of(request)) return Placed{*own, text("the job is assigned to device ", *own)};
  const auto devices = candidates(request.model, pool);
  const auto last = last_.find(request.model);
  const auto next =
      last == last_.end() ? devices.begin() : std::upper_bound(devices.begin(), devices.end(), last->second);
  const auto start = static_cast<size_t>(next - devices.begin());
  for (size_t step = 0; step < devices.size(); ++step) {
    const DeviceId device = devices[(start + step) % devices.size()];
    const uint32_t taken = seats_.taken(device);
    if (taken < ratio_ && request.closed != device)
      return Placed{device,
                    text("device ", device, " is next in the round (", taken, " of ", ratio_, " places taken)")};
  }
  return NotNow{text("all ", ratio_, " places of each of the ", devices.size(), " devices are taken"),
                WaitCause::kSeat};
}

void Cg::assigned(const Request& request, DeviceId device) {
  if (seats_.take(request, device)) last_[request.model] = device;
}

}  // namespace heddle::policy
