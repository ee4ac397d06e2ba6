#include "policy/circle.h"

#include <algorithm>
#include <map>
#include <set>

#include "policy/text.h"

namespace heddle::policy {
namespace {

constexpr size_t kNamed = 4;  // sessions of a circle that the reason names

using Requests = std::map<SessionId, std::vector<size_t>>;  // by session: indices into the blocked ones

// Where the request would go on `board`, if anywhere. An extension goes where its task is.
std::optional<DeviceId> destination(const Board& board, const Blocked& blocked) {
  Request request = blocked.request;
  if (blocked.kind == RequestKind::kExtension) {
    if (!board.can_extend(request.session, request.task, request.memory)) return {};
    return board.ledger().find(request.session, request.task)->device;
  }
  const auto workers = board.ledger().workers(request.session, request.virtual_device);
  request.workers = workers;
  const Answer answer = board.placement().place(request, board.pool());
  const auto* placed = std::get_if<Placed>(&answer);
  if (!placed) return {};
  return placed->device;
}

void carry_out(Board& board, const Blocked& blocked, DeviceId device) {
  const Request& request = blocked.request;
  // A policy that forgets about memory has any request for it answered at once, so what waits is a place alone.
  if (board.placement().memory_oblivious()) return board.take_place(request, device);
  switch (blocked.kind) {
    case RequestKind::kExtension:
      return board.extend(request.session, request.task, request.memory);
    case RequestKind::kTask:
      return board.begin(request, device);
    case RequestKind::kBind:
      return board.bind(request, device);
  }
}

// Whether all requests of one session go, together.
bool all_go(const Board& board, const std::vector<Blocked>& blocked, const std::vector<size_t>& requests) {
  if (requests.size() == 1) return destination(board, blocked[requests.front()]).has_value();
  Board trial(board);
  for (const size_t i : requests) {
    const auto device = destination(trial, blocked[i]);
    if (!device) return false;
    carry_out(trial, blocked[i], *device);
  }
  return true;
}

// Leaves in `waiting` the sessions that are stuck, and on `board` what they alone hold.
void reduce(Board& board, const std::vector<Blocked>& blocked, Requests& waiting) {
  std::vector<SessionId> free_to_run;
  for (const auto& [session, job] : board.sessions()) {
    if (!waiting.contains(session)) free_to_run.push_back(session);
  }
  for (const SessionId session : free_to_run) board.close_session(session);
  for (bool progress = true; progress;) {
    progress = std::erase_if(waiting, [&](const auto& entry) {
                 if (!all_go(board, blocked, entry.second)) return false;
                 board.close_session(entry.first);
                 return true;
               }) > 0;
  }
}

class StuckGraph {
 public:
  StuckGraph(const Board& board, const std::vector<Blocked>& blocked, const Requests& stuck)
      : board_(board), blocked_(blocked) {
    for (const auto& [session, requests] : stuck) {
      for (const auto& [other, unused] : stuck) {
        if (other != session && waits_for(requests, other)) edges_[session].insert(other);
      }
    }
  }

  // The sessions that wait for each other with `session`, itself included; nothing where it only waits behind a circle.
  std::set<SessionId> circle_of(SessionId session) const {
    std::set<SessionId> reached = reach(session);
    for (const SessionId other : reached) {
      if (other != session && !reach(other).contains(session)) return {};
    }
    reached.insert(session);
    return reached;
  }

 private:
  bool waits_for(const std::vector<size_t>& requests, SessionId other) const {
    return std::any_of(requests.begin(), requests.end(), [&](size_t i) {
      const Request& request = blocked_[i].request;
      if (blocked_[i].kind == RequestKind::kExtension)
        return board_.holds_on(other, board_.ledger().find(request.session, request.task)->device);
      const auto devices = board_.placement().candidates(request.model, board_.pool());
      return std::any_of(devices.begin(), devices.end(),
                         [&](DeviceId device) { return board_.holds_on(other, device); });
    });
  }

  std::set<SessionId> reach(SessionId from) const {
    std::set<SessionId> seen;
    std::vector<SessionId> open{from};
    while (!open.empty()) {
      const auto next = edges_.find(open.back());
      open.pop_back();
      if (next == edges_.end()) continue;
      for (const SessionId session : next->second) {
        if (seen.insert(session).second) open.push_back(session);
      }
    }
    return seen;
  }

  const Board& board_;
  const std::vector<Blocked>& blocked_;
  std::map<SessionId, std::set<SessionId>> edges_;
};

// "session 3 holds 6 GiB on device 0 and waits for 4 GiB on it"
std::string describe(const Board& board, const Blocked& blocked) {
  const Request& request = blocked.request;
  std::string who = text("session ", request.session, " holds ");
  bool any = false;
  for (uint64_t device = 0; device < board.pool().size(); ++device) {
    if (!board.holds_on(request.session, {device})) continue;
    append(who, any ? ", " : "", board.ledger().held_on(request.session, {device}), " on device ", device);
    any = true;
  }
  append(who, any ? " and waits for " : "nothing and waits for ");
  if (blocked.kind == RequestKind::kExtension) {
    append(who, request.memory, " more on device ", board.ledger().find(request.session, request.task)->device);
  } else if (blocked.kind == RequestKind::kBind) {
    append(who, "a place on a device of model ", board.pool().model_name(request.model));
  } else {
    append(who, request.memory, " on a device of model ", board.pool().model_name(request.model));
  }
  return who;
}

std::string explain(const Board& board, const std::vector<Blocked>& blocked, const Requests& stuck,
                    const std::set<SessionId>& circle) {
  std::string reason = "refused, because waiting could never end: ";
  size_t named = 0;
  for (const SessionId session : circle) {
    if (named == kNamed) break;
    append(reason, named++ == 0 ? "" : "; ", describe(board, blocked[stuck.at(session).front()]));
  }
  if (circle.size() > named) append(reason, "; and ", circle.size() - named, " more sessions");
  append(reason, "; this request is the youngest of them");
  return reason;
}

}  // namespace

std::optional<Circle> find_circle(const Board& board, const std::vector<Blocked>& blocked) {
  Requests waiting;
  for (size_t i = 0; i < blocked.size(); ++i) {
    if (board.holds(blocked[i].request.session)) waiting[blocked[i].request.session].push_back(i);
  }
  if (waiting.empty()) return {};
  Board reduced(board);
  // What processes outside of heddled use may come back: waiting for that is no circle.
  for (uint64_t device = 0; device < reduced.pool().size(); ++device) reduced.set_outside({device}, {});
  reduce(reduced, blocked, waiting);
  if (waiting.empty()) return {};

  // Of a stuck session's requests, those that would go by themselves are not what keeps it.
  for (auto& [session, requests] : waiting) {
    std::vector<size_t> kept = requests;
    std::erase_if(kept, [&](size_t i) { return destination(reduced, blocked[i]).has_value(); });
    if (!kept.empty()) requests = kept;
  }
  const StuckGraph graph(reduced, blocked, waiting);
  std::optional<size_t> victim;
  std::set<SessionId> circle;
  for (const auto& [session, requests] : waiting) {
    const auto members = graph.circle_of(session);
    if (members.empty()) continue;
    for (const size_t i : requests) {
      if (victim && blocked[i].key < blocked[*victim].key) continue;
      victim = i;
      circle = members;
    }
  }
  return Circle{*victim, explain(reduced, blocked, waiting, circle)};
}

}  // namespace heddle::policy
