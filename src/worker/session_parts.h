#pragma once

#include "core/device_model.h"
#include "device/device.h"
#include "protocol/messages.h"
#include "protocol/ring_memory.h"
#include "worker/commit.h"
#include "worker/epoch.h"
#include "worker/fault.h"
#include "worker/in_flight.h"
#include "worker/long_work.h"
#include "worker/modules.h"
#include "worker/progress.h"
#include "worker/reports.h"
#include "worker/usage.h"
#include "worker/variables.h"

namespace heddle::worker {

// What the two threads of a session share. Borrowed; session.h owns it.
struct SessionParts {
  device::Context& context;
  protocol::RingMemory& ring;
  Commit& commit;
  Progress& progress;
  Fault& fault;
  UsageMeter& usage;
  InFlight& in_flight;
  Variables& variables;
  OwnCopies& own_copies;
  Epoch& epoch;
  LongWork& long_work;
  Reports& reports;
};

}  // namespace heddle::worker
