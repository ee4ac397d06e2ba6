// DeviceMemory: memory that the program has freed and that stays where it is until somebody waits (idle_memory.h).

#include <algorithm>

#include "client/device/device_memory.h"

namespace heddle::client {

// Checked kernels must find reused memory unwritten; memory of a reserved address has no other place; what the compiler
// freed early the program still knows by its address, and what it promised for nothing was never used. Of memory that
// texture or surface objects were made of the worker may have an image that lives until it is unmapped, and that is
// copied back behind kernels. Side devices give back at once: their tasks end with what they declared.
bool DeviceMemory::may_stay(const Segment& segment, Freed how) {
  if (segment.kind != protocol::SegmentKind::kDevice || segment.textured ||
      segments_.arena().is_reserved(segment.address))
    return false;
  const bool kept = segment.number != 0 && task_.lazy().begun();
  const bool by_program = how == Freed::kWaited || how == Freed::kBehind;
  return kept && by_program && !ring_.is_side_device() && !ring_.session().checks_kernels() &&
         segments_.idle().allowed();
}

// False where it has to be given back.
bool DeviceMemory::stays(Segment* segment, Freed how) {
  if (!may_stay(*segment, how)) return false;
  if (how != Freed::kWaited && !ring_.reached(ring_.last_work())) return false;
  segments_.retire_lost();
  if (!return_idle(segments_.most_used() - segment->bytes) || !segments_.idle().offer(segment)) return false;
  // Somebody may have begun to wait in between: then heddled has looked before the offer, or the worker was asked.
  return segments_.idle().allowed() || !segments_.idle().take(segment);
}

// The last buffer went. The task goes on while its memory stays, for its worker to end.
Done DeviceMemory::all_freed() {
  // Where memory is granted at cudaMalloc, the next task would ask at once for what the driver took in this one.
  const bool can_carry_over = !grants_now() || charges_.segments() == 0;
  const bool can_rest =
      task_.lazy().begun() && !segments_.idle().empty() && ring_.reached(ring_.last_work()) && can_carry_over;
  if (can_rest && task_.rest()) return {};
  HEDDLE_ANSWER(return_idle(0));
  // The next task's worker may be another one, whose driver has taken nothing yet.
  for (const uint64_t counted : charges_.lapse()) {
    Segment* const segment = segments_.arena().release(counted, ring_.last_sequence());
    if (!segment) continue;  // cudaDeviceReset, in another thread, has taken it for a buffer
    HEDDLE_ANSWER(task_.emptied(segment, false, grants_now()));
  }
  segments_.count();
  return task_.all_freed();
}

Segment* DeviceMemory::take_idle(uint64_t bytes) {
  if (segments_.idle().empty()) return nullptr;
  // Memory that the program waits for has to be there when cudaMalloc returns.
  if (grants_now()) task_.resume();
  return segments_.idle().take_fitting(bytes);
}

// Beside `added` bytes more, what is idle may take what the budget leaves.
Done DeviceMemory::shrink_idle(uint64_t added) {
  if (segments_.idle().empty()) return {};
  segments_.retire_lost();
  const uint64_t used = segments_.used_bytes() + segments_.bytes_beside() + added;
  return return_idle(segments_.budget_bytes() - std::min(segments_.budget_bytes(), used));
}

Done DeviceMemory::return_idle(uint64_t most) {
  if (segments_.idle().bytes() <= most) return {};
  task_.resume();
  while (segments_.idle().bytes() > most) {
    Segment* const oldest = segments_.idle().take_oldest();
    if (!oldest) break;
    HEDDLE_ANSWER(task_.emptied(oldest, true, grants_now()));
  }
  segments_.retire_lost();
  return {};
}

}  // namespace heddle::client
