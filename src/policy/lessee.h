#pragma once

#include <cstdint>
#include <string>

#include "core/ids.h"
#include "core/units.h"

namespace heddle::policy {

// Who may hold a device's lease: one ring, that is one virtual device of a session. A worker serves it.
struct Lessee {
  SessionId session;
  uint32_t virtual_device = 0;
  friend auto operator<=>(const Lessee&, const Lessee&) = default;
};

// A user-facing job serves somebody who waits: each of its bursts is a request, which is to end within the job's SLO
// (service level objective). A batch job only wants to have been run.
enum class JobClass : uint8_t { kBatch, kUserFacing };
inline constexpr Duration kDefaultSlo = std::chrono::milliseconds(200);
// A worker that could not be terminated is tried again after so long.
inline constexpr Duration kTerminationRetry = std::chrono::milliseconds(200);

// What a job may have of a device, the same for all its lessees. A job's lessees share it.
struct Tenant {
  JobId job;
  // As core/device_share.h bounds them.
  double weight = 1;              // what counts is its ratio to the others'
  double request = 0, limit = 1;  // fractions of the device's time
  std::string app;                // what its programs are known by in the history
  JobClass kind = JobClass::kBatch;
  Duration slo = kDefaultSlo;  // of a user-facing job's requests; for others it says nothing
};

}  // namespace heddle::policy
