#include "policy/placement/reasons.h"

#include <algorithm>

#include "policy/text.h"

namespace heddle::policy {

std::string why_no_memory(const Request& request, std::span<const DeviceId> candidates, const Pool& pool) {
  const DeviceId most = *std::max_element(candidates.begin(), candidates.end(),
                                          [&](DeviceId a, DeviceId b) { return pool.free(a) < pool.free(b); });
  std::string why = text("needs ", pool.need(request, most), "; most is free on device ", most, ": ", pool.free(most),
                         " of ", pool.spec(most).memory);
  const DeviceLoad& there = pool.load(most);
  append_withheld(why, most, pool);
  if (there.max_workers != 0 && there.workers >= there.max_workers)
    append(why, ", with all ", there.max_workers, " of its workers taken");
  if (request.closed) append(why, "; device ", *request.closed, " is reserved for an older request");
  return why;
}

void append_withheld(std::string& why, DeviceId device, const Pool& pool) {
  const Bytes withheld = pool.load(device).withheld;
  if (withheld.value > 0) append(why, ", ", withheld, " are used by processes outside of heddled");
}

}  // namespace heddle::policy
