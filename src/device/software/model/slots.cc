#include "device/software/model/slots.h"

#include <algorithm>

namespace heddle::software {

bool Slots::request(const SlotRequest& request) {
  for (WaitRecord& record : lock_.mine().waits) {
    if (record.ticket != 0) continue;
    record.launch = request.launch;
    record.wanted = request.blocks;
    record.need = request.need;
    record.ready_ns = request.ready.time_since_epoch().count();
    record.together = request.together;
    record.passed = 0;
    record.ticket = lock_.new_ticket();
    place_waiting(all());
    return true;
  }
  return false;
}

void Slots::withdraw(uint64_t launch, TimePoint when) {
  for (WaitRecord& record : lock_.mine().waits) {
    if (record.ticket != 0 && record.launch == launch) lock_.leave_line(record, when);
  }
  place_waiting(all());  // it may have been the first in line, with space kept for it
}

void Slots::release(uint32_t slot, TimePoint when) {
  if (slot >= lock_.slots().size() || lock_.slots()[slot].holder != lock_.self() + 1) return;
  uint32_t sm = slot / static_cast<uint32_t>(lock_.slots_of(0).size());
  lock_.free_slot(slot, when);
  place_waiting({sm, sm + 1});
}

void Slots::sweep(TimePoint now) {
  lock_.sweep(now);
  place_waiting(all());
}

bool Slots::waiting() const {
  return std::any_of(std::begin(lock_.mine().waits), std::end(lock_.mine().waits),
                     [](const WaitRecord& record) { return record.ticket != 0; });
}

std::vector<Placement> Slots::collect() {
  std::vector<Placement> placed;
  if (!lock_.mine().uncollected) return placed;
  auto per_sm = static_cast<uint32_t>(lock_.slots_of(0).size());
  for (uint32_t i = 0; i < lock_.slots().size(); ++i) {
    SlotRecord& slot = lock_.slots()[i];
    if (slot.holder != lock_.self() + 1 || slot.collected) continue;
    slot.collected = 1;
    placed.push_back({i, i / per_sm, slot.launch, TimePoint(Duration(slot.start_ns))});
  }
  lock_.mine().uncollected = 0;
  return placed;
}

void Slots::place_waiting(SmRange sms) {
  for (bool placed = true; placed;) {
    placed = false;
    std::vector<Waiter> waiters = line();
    for (size_t i = 0; i < waiters.size() && !placed; ++i) {
      const bool held_line = waiters[i].record->holds_line();
      placed = waiters[i].record->together ? place_all(waiters[i]) : place(waiters[i], sms);
      if (!placed && held_line) sms.first = std::max(sms.first, may_have(waiters[i], sms).end);
      if (!placed) continue;
      for (size_t earlier = 0; earlier < i; ++earlier) ++waiters[earlier].record->passed;
      if (held_line) sms = all();  // space was kept there too
    }
  }
}

std::vector<Slots::Waiter> Slots::line() {
  std::vector<Waiter> waiters;
  for (uint32_t client = 0; client < kMostClients; ++client) {
    if (!lock_.clients()[client].attached) continue;
    for (WaitRecord& record : lock_.clients()[client].waits) {
      if (record.ticket != 0) waiters.push_back({client, &record});
    }
  }
  std::sort(waiters.begin(), waiters.end(),
            [](const Waiter& a, const Waiter& b) { return a.record->ticket < b.record->ticket; });
  return waiters;
}

bool Slots::place(const Waiter& waiter, SmRange sms) {
  auto sm = best_sm(waiter.record->need, may_have(waiter, sms));
  return sm && put(waiter, *sm);
}

Slots::SmRange Slots::may_have(const Waiter& waiter, SmRange sms) const {
  return {sms.first, std::min(sms.end, lock_.clients()[waiter.client].sms)};
}

bool Slots::place_all(const Waiter& waiter) {
  uint64_t fit = 0;
  const SmRange sms = may_have(waiter, all());
  for (uint32_t sm = sms.first; sm < sms.end; ++sm) fit += fitting(free_share(sm), waiter.record->need);
  if (fit < waiter.record->wanted) return false;
  while (waiter.record->ticket != 0) {
    auto sm = best_sm(waiter.record->need, sms);
    if (!sm || !put(waiter, *sm)) return false;
  }
  return true;
}

// The one with the most free warps.
std::optional<uint32_t> Slots::best_sm(const SmShare& need, SmRange sms) {
  std::optional<uint32_t> best;
  uint32_t most = 0;
  for (uint32_t sm = sms.first; sm < sms.end; ++sm) {
    SmShare free = free_share(sm);
    if (fitting(free, need) == 0 || (best && free.warps <= most)) continue;
    best = sm;
    most = free.warps;
  }
  return best;
}

SmShare Slots::free_share(uint32_t sm) {
  return without(lock_.whole_sm(), lock_.sms()[sm].used);
}

// The order of the stores matters: see board_layout.h. Killed behind the first, the client has a block too many, which
// it gives back; the other way round it would wait for one for ever.
bool Slots::put(const Waiter& waiter, uint32_t sm) {
  auto slots = lock_.slots_of(sm);
  auto free = std::find_if(slots.begin(), slots.end(), [](const SlotRecord& slot) { return slot.holder == 0; });
  if (free == slots.end()) return false;

  WaitRecord& wait = *waiter.record;
  SmRecord& record = lock_.sms()[sm];
  bool had_room = fitting(without(lock_.whole_sm(), record.used_before), wait.need) > 0;
  free->collected = 0;
  free->launch = wait.launch;
  free->start_ns = std::max(wait.ready_ns, lock_.header().line_went_on_ns);
  if (!had_room) free->start_ns = std::max(free->start_ns, record.released_ns);
  if (wait.holds_line()) lock_.header().line_went_on_ns = free->start_ns;
  free->held = wait.need;
  __atomic_store_n(&free->holder, waiter.client + 1, __ATOMIC_RELEASE);
  record.used = together(record.used, wait.need);
  record.used_before = together(record.used_before, wait.need);

  wait.passed = 0;
  wait.wanted -= wait.wanted > 0;
  wait.ticket = wait.wanted == 0 ? 0 : lock_.new_ticket();
  lock_.clients()[waiter.client].uncollected = 1;
  if (waiter.client != lock_.self()) lock_.ring_later(waiter.client);
  return true;
}

}  // namespace heddle::software
