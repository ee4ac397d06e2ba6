#include "policy/placement/mgb_warps.h"

#include <algorithm>

#include "policy/placement/reasons.h"
#include "policy/text.h"

namespace heddle::policy {
namespace {

constexpr size_t kNamed = 3;  // fitting devices that a reason names; the others it counts

struct Fitting {
  DeviceId named[kNamed];
  size_t count = 0;
  void add(DeviceId device) {
    if (count < kNamed) named[count] = device;
    ++count;
  }
};

std::string why(DeviceId chosen, const Fitting& fitting, const Pool& pool) {
  std::string reason = text("fits on ");
  for (size_t i = 0; i < std::min(fitting.count, kNamed); ++i) {
    append(reason, i == 0 ? "" : ", ", fitting.named[i], " (", pool.free(fitting.named[i]), " free)");
  }
  if (fitting.count > kNamed) append(reason, " and ", fitting.count - kNamed, " more");
  append(reason, "; fewest warps in use on ", chosen, " (", pool.load(chosen).warps, " of ", pool.max_warps(chosen),
         ")");
  return reason;
}

}  // namespace

Answer MgbWarps::place(const Request& request, const Pool& pool) const {
  const auto devices = candidates(request.model, pool);
  Fitting fitting;
  DeviceId best;
  uint64_t fewest = 0;
  for (const DeviceId device : devices) {
    if (!pool.fits(request, device)) continue;
    const uint64_t warps = pool.load(device).warps;
    if (fitting.count == 0 || warps < fewest) {
      best = device;
      fewest = warps;
    }
    fitting.add(device);
  }
  if (fitting.count == 0) return NotNow{why_no_memory(request, devices, pool)};
  return Placed{best, why(best, fitting, pool)};
}

}  // namespace heddle::policy
