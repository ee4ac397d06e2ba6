#include "device/software/model/turns.h"

#include <algorithm>

namespace heddle::software {
namespace {

// After a pause (nobody was running for a long time) rotation does not replay all the slices that it missed.
constexpr int64_t kMostSlicesBehind = 1000;

int64_t to_ns(TimePoint at) {
  return at.time_since_epoch().count();
}

}  // namespace

void Turns::want(TimePoint since, TimePoint now) {
  ClientRecord& mine = lock_.mine();
  if (mine.turn_ticket == 0) {
    mine.turn_ticket = lock_.new_ticket();
    mine.turn_asked_ns = to_ns(std::min(since, now));
  }
  rotate(now);
}

void Turns::give_up(TimePoint when, TimePoint now) {
  clamp(to_ns(now));
  lock_.mine().turn_ticket = 0;
  if (mine()) end(std::clamp(to_ns(when), lock_.header().turn_since_ns, to_ns(now)));
  rotate(now);
}

void Turns::rotate(TimePoint now) {
  clamp(to_ns(now));
  BoardHeader& board = lock_.header();
  if (board.turn_holder == 0) {
    auto next = next_in_line();
    if (!next) return;
    begin(*next, std::max(board.idle_since_ns, std::min(lock_.clients()[*next].turn_asked_ns, to_ns(now))));
  }
  int64_t slices = std::max<int64_t>(to_ns(now) - board.slice_start_ns, 0) / slice_.count();
  if (slices == 0) return;
  if (!next_in_line()) {  // alone: its slice is renewed
    board.slice_start_ns += slices * slice_.count();
    return;
  }
  if (slices > kMostSlicesBehind) board.slice_start_ns += (slices - kMostSlicesBehind) * slice_.count();
  while (board.turn_holder != 0 && to_ns(now) - board.slice_start_ns >= slice_.count()) {
    int64_t at = board.slice_start_ns + slice_.count();
    uint32_t next = *next_in_line();
    end(at);
    begin(next, at);
  }
}

TimePoint Turns::device_time(TimePoint now) const {
  int64_t owned = lock_.mine().owned_ns;
  if (mine()) owned += std::max<int64_t>(to_ns(now) - lock_.header().turn_since_ns, 0);
  return TimePoint(Duration(owned));
}

std::optional<TimePoint> Turns::next_rotation() const {
  if (lock_.header().turn_holder == 0 || !next_in_line()) return std::nullopt;
  return TimePoint(Duration(lock_.header().slice_start_ns)) + slice_;
}

// The lowest ticket of those that want the device and do not have it.
std::optional<uint32_t> Turns::next_in_line() const {
  std::optional<uint32_t> next;
  for (uint32_t i = 0; i < kMostClients; ++i) {
    const ClientRecord& client = lock_.clients()[i];
    if (!client.attached || client.turn_ticket == 0 || lock_.header().turn_holder == i + 1) continue;
    if (!next || client.turn_ticket < lock_.clients()[*next].turn_ticket) next = i;
  }
  return next;
}

void Turns::begin(uint32_t client, int64_t at_ns) {
  BoardHeader& board = lock_.header();
  board.turn_since_ns = board.slice_start_ns = at_ns;
  board.turn_holder = client + 1;
  lock_.clients()[client].turn_ticket = lock_.new_ticket();  // behind the others, for the turn after this one
  if (client != lock_.self()) lock_.ring_later(client);
}

void Turns::end(int64_t at_ns) {
  BoardHeader& board = lock_.header();
  uint32_t client = board.turn_holder - 1;
  lock_.clients()[client].owned_ns += at_ns - board.turn_since_ns;
  board.turn_holder = 0;
  board.idle_since_ns = at_ns;
  if (client != lock_.self()) lock_.ring_later(client);
}

// Another process wrote these.
void Turns::clamp(int64_t now_ns) {
  BoardHeader& board = lock_.header();
  if (board.turn_holder > kMostClients) board.turn_holder = 0;
  if (board.turn_holder != 0 && !lock_.clients()[board.turn_holder - 1].attached) board.turn_holder = 0;
  board.idle_since_ns = std::clamp<int64_t>(board.idle_since_ns, 0, now_ns);
  board.turn_since_ns = std::clamp<int64_t>(board.turn_since_ns, 0, now_ns);
  board.slice_start_ns = std::clamp<int64_t>(board.slice_start_ns, board.turn_since_ns, now_ns);
}

}  // namespace heddle::software
