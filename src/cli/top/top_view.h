#pragma once

#include "cli/json.h"
#include "core/units.h"

namespace heddle::cli {

// heddled's answer to `ps` with `whole` (src/daemon/README.md), where each job may have a "user" beside its uid; empty:
// there was none yet. Devices, heddled and its clock are as of the moment of the first page, sessions and jobs as of
// that of their own page.
struct TopSample {
  Json whole = Json::object();
};

// What `heddle top` shows, as it prints it with --json: devices and jobs, busy shares over the time between the two
// samples. A share is that of the time in which a kernel, library call or fill was on a device; several that ran side
// by side count each, so that a device's and a job's may exceed 1. Null where the earlier sample has no such job, or
// another heddled answered it.
//
//   time_ns interval_ns            heddled's clock; 0 in the first look
//   heddled                        version pid uptime_ns policy dispatch
//   devices                        device name state busy used free memory tasks warps max_warps policy dispatch leases
//     revocation                   bound_ns window_ns revocation_ns measured so_far; null where nothing is revoked
//   jobs                           job user name app state devices weight share limit busy busy_ns bursts memory
//     revocations                  as in `ps`; null: its leases were never taken back in the middle of a burst
//     lease                        state for_ns device: of the task that is furthest; null where nothing is lent
//     wait                         cause why for_ns (null: not noted): of the task that has waited longest; null: none
//   hidden_sessions                of other users
Json top_object(const TopSample& before, const TopSample& now);

// The same for a terminal of so many columns and lines; 0: as many as it takes. What does not fit is counted in the
// last line.
std::string top_text(const Json& object, size_t columns, size_t lines);

}  // namespace heddle::cli
