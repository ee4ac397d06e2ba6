#include "policy/placement/grr.h"

#include <algorithm>

#include "policy/text.h"

namespace heddle::policy {

Placed Grr::choose(const Request& request, std::span<const DeviceId> fitting, const Pool& /*pool*/) const {
  const auto last = last_.find(request.model);
  auto next = fitting.begin();
  if (last != last_.end()) next = std::upper_bound(fitting.begin(), fitting.end(), last->second);
  if (next == fitting.end()) next = fitting.begin();
  return {*next, text("device ", *next, " is next in the round of those with the memory")};
}

void Grr::assigned(const Request& request, DeviceId device) {
  if (take(request, device)) last_[request.model] = device;
}

}  // namespace heddle::policy
