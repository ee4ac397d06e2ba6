#include <cerrno>
#include <utility>

#include "device/software/model/board.h"

namespace heddle::software {

BoardLock::BoardLock(BoardLock&& other) noexcept
    : board_(std::exchange(other.board_, nullptr)), to_ring_(other.to_ring_) {}

BoardLock::~BoardLock() {
  if (!board_) return;
  pthread_mutex_unlock(&board_->header().lock);
  for (uint32_t client = 0; client < kMostClients && to_ring_.any(); ++client) {
    if (to_ring_.test(client)) board_->ring(client);
    to_ring_.reset(client);
  }
}

std::span<SlotRecord> BoardLock::slots_of(uint32_t sm) {
  return board_->slots_.subspan(size_t{sm} * board_->slots_per_sm_, board_->slots_per_sm_);
}

bool BoardLock::sweep(TimePoint now) {
  bool found = false;
  for (uint32_t i = 0; i < kMostClients; ++i) {
    ClientRecord& client = clients()[i];
    if (i == self() || !client.attached) continue;
    int taken = pthread_mutex_trylock(&client.life);
    if (taken != EOWNERDEAD && taken != 0) continue;  // it lives
    reclaim(i, now);
    client.attached = 0;
    if (taken == EOWNERDEAD) pthread_mutex_consistent(&client.life);
    pthread_mutex_unlock(&client.life);
    found = true;
  }
  return found;
}

void BoardLock::reclaim(uint32_t client, TimePoint now) {
  ClientRecord& record = clients()[client];
  for (WaitRecord& wait : record.waits) leave_line(wait, now);
  record.uncollected = 0;
  record.turn_ticket = 0;
  record.owned_ns = 0;
  for (uint32_t slot = 0; slot < slots().size(); ++slot) {
    if (slots()[slot].holder == client + 1) free_slot(slot, now);
  }
  if (header().turn_holder != client + 1) return;
  header().turn_holder = 0;
  header().idle_since_ns = now.time_since_epoch().count();
}

void BoardLock::leave_line(WaitRecord& wait, TimePoint when) {
  if (wait.holds_line()) header().line_went_on_ns = when.time_since_epoch().count();
  wait = WaitRecord{};
}

void BoardLock::free_slot(uint32_t slot, TimePoint when) {
  SlotRecord& record = slots()[slot];
  SmRecord& sm = sms()[slot / board_->slots_per_sm_];
  int64_t when_ns = when.time_since_epoch().count();
  if (when_ns > sm.released_ns) {
    sm.released_ns = when_ns;
    sm.used_before = sm.used;
  }
  SmShare held = record.held;
  record.holder = 0;
  sm.used = without(sm.used, held);
}

}  // namespace heddle::software
