#include "device/software/block_pacer.h"

#include <algorithm>

namespace heddle::software {

void BlockPacer::launch(std::shared_ptr<Grid> grid) {
  const Operation& operation = *grid->operation;
  uint64_t id = grid->id();
  TimePoint ready = std::max(operation.ready, operation.enqueued + pace_.launch_latency());
  launches_[id] = {std::move(grid), ready, {}, {}, {}};
  not_in_line_.insert(id);
}

void BlockPacer::computed(const BlockRun& run, TimePoint now) {
  auto found = launches_.find(run.grid->id());
  if (found == launches_.end()) return;  // cancelled
  Launch& launch = found->second;
  const Counters& did = run.counters;
  TimePoint end = run.placed + pace_.block(run.grid->block_share(), did.warp_instructions,
                                           did.global_bytes - did.host_bytes, did.host_bytes);
  TimePoint device_now = clocks_.device_at(now);
  if (device_now > end) {
    add_overrun(launch, {end, device_now});
    end = device_now;
  }
  ends_.push({end, found->first, run.slot});
}

// Blocks that are late at the same time are late once: what counts is for how long any was. `late` ends after all that
// came before it.
void BlockPacer::add_overrun(Launch& launch, Interval late) {
  uint64_t& overrun = launch.grid->operation->overrun_ns;
  auto length = [](const Interval& interval) { return static_cast<uint64_t>((interval.end - interval.start).count()); };
  while (!launch.late.empty() && launch.late.back().start >= late.start) {
    overrun -= length(launch.late.back());
    launch.late.pop_back();
  }
  if (!launch.late.empty()) late.start = std::max(late.start, launch.late.back().end);
  overrun += length(late);
  launch.late.push_back(late);
}

void BlockPacer::cancel() {
  for (auto launch = launches_.begin(); launch != launches_.end();) {
    if (!launch->second.grid->cancelled()) {
      ++launch;
      continue;
    }
    not_in_line_.erase(launch->first);
    cancelled_.push_back(std::move(launch->second));
    launch = launches_.erase(launch);
  }
}

void BlockPacer::step(Slots& slots, Turns* turns, TimePoint now, Step& out) {
  clocks_ = {now, turns ? turns->device_time(now) : now, !turns || turns->mine()};
  give_back(slots);
  end_blocks(slots, out);
  join_line(slots, turns);
  take_places(slots, out);
}

void BlockPacer::give_back(Slots& slots) {
  for (Launch& launch : std::exchange(cancelled_, {})) {
    slots.withdraw(launch.grid->id(), clocks_.device);
    for (uint32_t slot : launch.slots) slots.release(slot, clocks_.device);
  }
}

void BlockPacer::end_blocks(Slots& slots, Step& out) {
  while (!ends_.empty() && ends_.top().at <= clocks_.device) {
    BlockEnd end = ends_.top();
    ends_.pop();
    auto found = launches_.find(end.launch);
    if (found == launches_.end()) continue;  // cancelled: its slots went back at once
    Launch& launch = found->second;
    slots.release(end.slot, end.at);
    launch.slots.erase(end.slot);
    --launch.grid->resident;
    last_end_ = std::max(last_end_, clocks_.machine_at(end.at));
    if (++launch.grid->done < launch.grid->blocks()) continue;
    out.ended.push_back({launch.grid, clocks_.machine_at(end.at)});
    launches_.erase(found);
  }
}

void BlockPacer::join_line(Slots& slots, Turns* turns) {
  for (auto id = not_in_line_.begin(); id != not_in_line_.end();) {
    Launch& launch = launches_.at(*id);
    if (launch.ready > clocks_.machine) {
      ++id;
      continue;
    }
    const Grid& grid = *launch.grid;
    TimePoint ready = turns ? turns->device_time(launch.ready) : launch.ready;
    if (!slots.request({*id, grid.blocks(), grid.block_share(), ready, grid.cooperative})) return;
    id = not_in_line_.erase(id);
  }
}

void BlockPacer::take_places(Slots& slots, Step& out) {
  for (const Placement& placement : slots.collect()) {
    if (!take_place(placement, out)) slots.release(placement.slot, clocks_.device);
  }
}

// False for a place that nobody needs: of a launch that was cancelled meanwhile, or one too many after a repair.
bool BlockPacer::take_place(const Placement& placement, Step& out) {
  auto found = launches_.find(placement.launch);
  if (found == launches_.end() || found->second.grid->all_dealt()) return false;
  Launch& launch = found->second;
  BlockRun run;
  run.grid = launch.grid;
  run.next = launch.grid->next++;
  run.end = run.next + 1;
  run.sm = placement.sm;
  run.slot = placement.slot;
  run.placed = std::min(placement.start, clocks_.device);
  ++launch.grid->resident;
  launch.slots.insert(placement.slot);
  TimePoint began = clocks_.machine_at(run.placed);
  if (!launch.began || began < *launch.began) {
    launch.began = began;
    launch.grid->operation->began = began;
  }
  out.placed.push_back(std::move(run));
  return true;
}

std::optional<TimePoint> BlockPacer::wanted_since(TimePoint now) const {
  std::optional<TimePoint> since;
  for (const auto& [id, launch] : launches_) {
    if (launch.ready <= now && (!since || launch.ready < *since)) since = launch.ready;
  }
  return since;
}

std::optional<TimePoint> BlockPacer::next() const {
  std::optional<TimePoint> next;
  if (!cancelled_.empty()) return clocks_.machine;
  if (clocks_.running && !ends_.empty()) next = clocks_.machine_at(ends_.top().at);
  for (uint64_t id : not_in_line_) {
    TimePoint ready = launches_.at(id).ready;
    if (ready > clocks_.machine && (!next || ready < *next)) next = ready;
  }
  return next;
}

}  // namespace heddle::software
