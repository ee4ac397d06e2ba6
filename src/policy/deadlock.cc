#include "policy/deadlock.h"

#include <algorithm>
#include <map>
#include <set>

#include "policy/components.h"
#include "policy/text.h"

namespace heddle::policy {
namespace {

constexpr size_t kNamedSessions = 4;  // sessions of a deadlock that the reason names

using Requests = std::map<SessionId, std::vector<size_t>>;  // by session: indices into the blocked ones

// Where the request would go on `state`, if anywhere. An extension goes where its task is.
std::optional<DeviceId> destination(const PlacementState& state, const Blocked& blocked) {
  Request request = blocked.request;
  if (blocked.kind == RequestKind::kExtension) {
    if (!state.can_extend(request.session, request.task, request.memory)) return {};
    return state.ledger().find(request.session, request.task)->device;
  }
  const auto workers = state.ledger().workers(request.session, request.virtual_device);
  request.workers = workers;
  const Answer answer = state.placement().place(request, state.pool());
  const auto* placed = std::get_if<Placed>(&answer);
  if (!placed) return {};
  return placed->device;
}

void carry_out(PlacementState& state, const Blocked& blocked, DeviceId device) {
  const Request& request = blocked.request;
  // A policy that forgets about memory has any request for it answered at once, so what waits is a place alone.
  if (state.placement().memory_oblivious()) return state.take_place(request, device);
  switch (blocked.kind) {
    case RequestKind::kExtension:
      return state.extend(request.session, request.task, request.memory);
    case RequestKind::kTask:
    case RequestKind::kResume:
      return state.begin(request, device);
  }
}

// Whether any device has the memory at all: cheap, and where it has not, no policy that counts memory has a place.
bool may_go(const PlacementState& state, const Blocked& blocked) {
  const Request& request = blocked.request;
  if (state.placement().memory_oblivious()) return true;
  if (blocked.kind == RequestKind::kExtension) return state.can_extend(request.session, request.task, request.memory);
  const auto devices = state.pool().devices_of(request.model);
  return std::any_of(devices.begin(), devices.end(),
                     [&](DeviceId device) { return request.memory <= state.pool().free(device); });
}

// Whether all requests of one session go, together.
bool all_go(const PlacementState& state, const std::vector<Blocked>& blocked, const std::vector<size_t>& requests) {
  if (!std::all_of(requests.begin(), requests.end(), [&](size_t i) { return may_go(state, blocked[i]); })) return false;
  if (requests.size() == 1) return destination(state, blocked[requests.front()]).has_value();
  PlacementState trial(state);
  for (const size_t i : requests) {
    const auto device = destination(trial, blocked[i]);
    if (!device) return false;
    carry_out(trial, blocked[i], *device);
  }
  return true;
}

// Leaves in `waiting` the sessions that are stuck, and on `state` what they alone hold.
void reduce(PlacementState& state, const std::vector<Blocked>& blocked, Requests& waiting) {
  std::vector<SessionId> free_to_run;
  for (const auto& [session, job] : state.sessions()) {
    if (!waiting.contains(session)) free_to_run.push_back(session);
  }
  for (const SessionId session : free_to_run) state.close_session(session);
  for (bool progress = true; progress;) {
    progress = std::erase_if(waiting, [&](const auto& entry) {
                 if (!all_go(state, blocked, entry.second)) return false;
                 state.close_session(entry.first);
                 return true;
               }) > 0;
  }
}

// Who waits for whom, as one step through a device each: from a session to the devices it waits for, from a device to
// the sessions that hold something there. A device that none of them holds anything on blocks nobody.
class StuckGraph {
 public:
  StuckGraph(const PlacementState& state, const std::vector<Blocked>& blocked, const Requests& stuck)
      : state_(state), blocked_(blocked) {
    for (const auto& [session, requests] : stuck) sessions_.push_back(session);
    Edges edges(sessions_.size() + state.pool().size());
    for (uint64_t device = 0; device < state.pool().size(); ++device) {
      for (size_t i = 0; i < sessions_.size(); ++i) {
        if (state.holds_on(sessions_[i], {device})) edges[node_of({device})].push_back(i);
      }
    }
    for (size_t i = 0; i < sessions_.size(); ++i) {
      for (const DeviceId device : waited_for(stuck.at(sessions_[i]))) {
        if (!edges[node_of(device)].empty()) edges[i].push_back(node_of(device));
      }
    }
    found_ = components(edges);
  }

  // Whether the session is part of a deadlock, and does not only wait behind one.
  bool in_deadlock(SessionId session) const { return !found_.leads_outside[found_.of[index_of(session)]]; }
  // The sessions that wait for each other with `session`, itself included.
  std::set<SessionId> deadlock_of(SessionId session) const {
    const size_t at = index_of(session);
    std::set<SessionId> members;
    for (size_t i = 0; i < sessions_.size(); ++i) {
      if (found_.of[i] == found_.of[at]) members.insert(sessions_[i]);
    }
    return members;
  }

 private:
  size_t index_of(SessionId session) const {
    return static_cast<size_t>(std::lower_bound(sessions_.begin(), sessions_.end(), session) - sessions_.begin());
  }
  size_t node_of(DeviceId device) const { return sessions_.size() + device.value; }

  std::set<DeviceId> waited_for(const std::vector<size_t>& requests) const {
    std::set<DeviceId> devices;
    for (const size_t i : requests) {
      const Request& request = blocked_[i].request;
      if (blocked_[i].kind == RequestKind::kExtension) {
        devices.insert(state_.ledger().find(request.session, request.task)->device);
      } else if (const auto assigned = state_.placement().assignment(request)) {
        devices.insert(*assigned);
      } else {
        const auto candidates = state_.placement().candidates(request.model, state_.pool());
        devices.insert(candidates.begin(), candidates.end());
      }
    }
    return devices;
  }

  const PlacementState& state_;
  const std::vector<Blocked>& blocked_;
  std::vector<SessionId> sessions_;  // nodes 0, 1, ...; the devices come behind them
  Components found_;
};

// "session 3 holds 6 GiB on device 0 and waits for 4 GiB on it"
std::string describe(const PlacementState& state, const Blocked& blocked) {
  const Request& request = blocked.request;
  std::string who = text("session ", request.session, " holds ");
  bool any = false;
  for (uint64_t device = 0; device < state.pool().size(); ++device) {
    if (!state.holds_on(request.session, {device})) continue;
    append(who, any ? ", " : "", state.ledger().held_on(request.session, {device}), " on device ", device);
    any = true;
  }
  append(who, any ? " and waits for " : "nothing and waits for ");
  if (blocked.kind == RequestKind::kExtension) {
    append(who, request.memory, " more on device ", state.ledger().find(request.session, request.task)->device);
  } else {
    append(who, request.memory, " on a device of model ", state.pool().model_name(request.model));
  }
  return who;
}

std::string explain(const PlacementState& state, const std::vector<Blocked>& blocked, const Requests& stuck,
                    const std::set<SessionId>& deadlock) {
  std::string reason;
  size_t named = 0;
  for (const SessionId session : deadlock) {
    if (named == kNamedSessions) break;
    append(reason, named++ == 0 ? "" : "; ", describe(state, blocked[stuck.at(session).front()]));
  }
  if (deadlock.size() > named) append(reason, "; and ", deadlock.size() - named, " more sessions");
  append(reason, "; this request is the youngest of them");
  return reason;
}

}  // namespace

std::optional<Deadlock> find_deadlock(const PlacementState& state, const std::vector<Blocked>& blocked) {
  Requests waiting;
  for (size_t i = 0; i < blocked.size(); ++i) {
    if (state.holds(blocked[i].request.session)) waiting[blocked[i].request.session].push_back(i);
  }
  if (waiting.empty()) return {};
  PlacementState reduced(state);
  // What processes outside of heddled use may come back: waiting for that is no deadlock.
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
  for (const auto& [session, requests] : waiting) {
    if (!graph.in_deadlock(session)) continue;
    for (const size_t i : requests) {
      if (!victim || blocked[*victim].key < blocked[i].key) victim = i;
    }
  }
  const auto deadlock = graph.deadlock_of(blocked[*victim].request.session);
  return Deadlock{*victim, explain(reduced, blocked, waiting, deadlock), deadlock.size() == 1};
}

}  // namespace heddle::policy
