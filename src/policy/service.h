#pragma once

#include <cstdint>

#include "core/units.h"

namespace heddle::policy {

// What a lessee used of its device, as its worker measured it. Busy time is the union, not the sum, of the times in
// which a kernel, library call or fill of it was on the device; copies count apart. A burst begins with the first
// record that comes to an idle ring and ends when nothing is pending or in flight; where the lessee waits for the
// device's lease, that time is no part of it.
struct Service {
  Duration busy{}, copies{};
  uint64_t bursts = 0;
  // No sums but the largest of the last seconds; 0 where nothing was measured in them.
  Duration longest_burst{};  // of a single one
  Duration merged_burst{};   // where bursts with gaps of at most 2 ms count as one
  Duration longest_gap{};    // from a burst's end to the beginning of the next
  // Of a lessee that holds the lease, as things are now.
  Duration drain{};        // how long what is in flight is likely to take
  Duration uncommitted{};  // busy time that is lost, and run again, if its worker is terminated
  bool exposed = false;    // it would not outlive its worker, which is therefore not terminated
};

}  // namespace heddle::policy
