// VirtualDevice: memory that the program has freed and that stays where it is until somebody waits (idle_memory.h).

#include <algorithm>

#include "client/virtual_device.h"

namespace heddle::client {

using protocol::IdleTable;

// Checked kernels must find reused memory unwritten; memory of a reserved address has no other place; what the compiler
// freed early the program still knows by its address, and what it promised for nothing was never used. Of memory that
// texture or surface objects were made of the worker may have an image that lives until it is unmapped, and that is
// copied back behind kernels. Lanes give back at once: their tasks end with what they declared.
bool VirtualDevice::may_stay(const Segment& segment, Freed how) const {
  if (segment.room || segment.textured || arena_.is_reserved(segment.address)) return false;
  const bool kept = segment.number != 0 && task_.begun();
  const bool by_program = how == Freed::kWaited || how == Freed::kBehind;
  return kept && by_program && !home_ && !session().checks_kernels() && idle_.allowed();
}

// False where it has to be given back.
bool VirtualDevice::stays(Segment* segment, Freed how) {
  if (!may_stay(*segment, how)) return false;
  if (how != Freed::kWaited && !ring_.reached(ring_.last_work())) return false;
  retire_lost();
  if (!return_idle(most_held_ - segment->bytes) || !idle_.offer(segment)) return false;
  // Somebody may have begun to wait in between: then heddled has looked before the offer, or the worker was asked.
  return idle_.allowed() || !idle_.take(segment);
}

// The last buffer went. The task goes on while its memory stays, for its worker to end.
Done VirtualDevice::all_freed() {
  if (task_.begun() && !idle_.empty() && ring_.reached(ring_.last_work())) {
    task_.rest();
    ring_.header().idle.task.store(IdleTable::offered_task(task_.serial()), std::memory_order_seq_cst);
    if (idle_.allowed()) return {};
    resume();
  }
  HEDDLE_ANSWER(return_idle(0));
  return task_.all_freed();
}

// In whichever order, the worker takes the task and what is idle, or this does.
void VirtualDevice::resume_resting() {
  uint64_t offered = IdleTable::offered_task(task_.serial());
  if (ring_.header().idle.task.compare_exchange_strong(offered, 0)) return task_.resume();
  last_end_ = ring_.last_sequence();
  std::vector<Segment*> live, ghosts;
  while (Segment* segment = idle_.take_oldest()) ghosts.push_back(segment);
  retire_lost();
  arena_.for_each_segment([&](Segment* segment) {
    if (segment->buffers > 0 && segment->number != 0) live.push_back(segment);
  });
  task_.was_ended(live, ghosts);
}

Segment* VirtualDevice::take_idle(uint64_t bytes) {
  if (idle_.empty()) return nullptr;
  // Memory that the program waits for has to be there when cudaMalloc returns.
  if (binds_now()) resume();
  return idle_.take_fitting(bytes);
}

// Beside `added` bytes more, what is idle may take what the budget leaves.
Done VirtualDevice::shrink_idle(uint64_t added) {
  if (idle_.empty()) return {};
  retire_lost();
  const uint64_t used = arena_.segment_bytes() - idle_.bytes() + bytes_beside() + added;
  const uint64_t budget = session().welcome().budget_bytes;
  return return_idle(budget - std::min(budget, used));
}

Done VirtualDevice::return_idle(uint64_t most) {
  if (idle_.bytes() <= most) return {};
  resume();
  while (idle_.bytes() > most) {
    Segment* const oldest = idle_.take_oldest();
    if (!oldest) break;
    HEDDLE_ANSWER(task_.emptied(oldest, true, binds_now()));
  }
  retire_lost();
  return {};
}

void VirtualDevice::retire_lost() {
  for (Segment* segment : idle_.lost()) retire(segment, 0);
}

}  // namespace heddle::client
