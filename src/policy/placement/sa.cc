#include "policy/placement/sa.h"

#include "policy/text.h"

namespace heddle::policy {

Answer Sa::place(const Request& request, const Pool& pool) const {
  if (const auto own = seats_.of(request)) return Placed{*own, text("device ", *own, " is the job's own")};
  const auto devices = candidates(request.model, pool);
  for (const DeviceId device : devices) {
    if (seats_.taken(device) == 0 && request.closed != device)
      return Placed{device, text("device ", device, " is the first without a job; it is the job's own until it ends")};
  }
  return NotNow{text("each of the ", devices.size(), " devices belongs to a job"), WaitCause::kSeat};
}

}  // namespace heddle::policy
