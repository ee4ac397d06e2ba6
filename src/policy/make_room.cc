#include "policy/make_room.h"

#include <algorithm>
#include <map>
#include <optional>

namespace heddle::policy {
namespace {

struct Leaver {
  Bytes bytes;
  MayLeave who;
};

Bytes bytes_of(const std::vector<Leaver>& leavers) {
  Bytes sum;
  for (const Leaver& each : leavers) sum += each.bytes;
  return sum;
}

bool goes(const PlacementState& state, const Blocked& blocked, const std::vector<Leaver>& leaving) {
  PlacementState trial(state);
  for (const Leaver& each : leaving) trial.end(each.who.session, each.who.task);
  Request request = blocked.request;
  if (!wants_device(blocked.kind)) return trial.can_extend(request.session, request.task, request.memory);
  const auto workers = trial.ledger().workers(request.session, request.virtual_device);
  request.workers = workers;
  const Answer answer = trial.placement().place(request, trial.pool());
  const auto* placed = std::get_if<Placed>(&answer);
  return placed && trial.pool().fits(request, placed->device);
}

// The largest leave until one more does, and of those that do the smallest goes. None where all would not be enough:
// most requests in a long line are such.
std::vector<Leaver> fewest(const PlacementState& state, const Blocked& request, std::vector<Leaver> there) {
  std::sort(there.begin(), there.end(), [](const Leaver& a, const Leaver& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.who.task < b.who.task;
  });
  if (!goes(state, request, there)) return {};
  std::vector<Leaver> leaving;
  for (; !there.empty(); there.pop_back()) {
    for (const Leaver& last : there) {
      leaving.push_back(last);
      if (goes(state, request, leaving)) return leaving;
      leaving.pop_back();
    }
    leaving.push_back(there.back());
  }
  return {};
}

}  // namespace

std::vector<TaskId> make_room(const PlacementState& state, const Blocked& request, const std::vector<MayLeave>& tasks) {
  std::map<DeviceId, std::vector<Leaver>> by_device;
  for (const MayLeave& each : tasks) {
    const Holding* holding = state.ledger().find(each.session, each.task);
    if (holding && each.task != request.request.task) by_device[holding->device].push_back({holding->memory, each});
  }
  std::vector<Leaver> best;
  for (const auto& [device, there] : by_device) {
    if (state.pool().model_of(device) != request.request.model) continue;
    std::vector<Leaver> leaving = fewest(state, request, there);
    if (!leaving.empty() && (best.empty() || bytes_of(leaving) < bytes_of(best))) best = std::move(leaving);
  }
  std::vector<TaskId> ids;
  for (const Leaver& each : best) ids.push_back(each.who.task);
  return ids;
}

}  // namespace heddle::policy
