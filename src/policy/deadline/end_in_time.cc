#include "policy/deadline/end_in_time.h"

#include <functional>
#include <queue>

namespace heddle::policy {
namespace {

using Member = ModelState::Member;

bool end_in_time(const ModelState& state, const Requests& requests, const std::vector<TimePoint>& free,
                 const std::function<Duration(const Member&)>& longest) {
  if (free.empty()) return requests.empty();
  std::priority_queue<TimePoint, std::vector<TimePoint>, std::greater<>> next(free.begin(), free.end());
  for (const Member* request : requests) {
    const TimePoint begin = next.top();
    if (begin + longest(*request) > request->deadline()) return false;
    next.pop();
    next.push(begin + state.expected(*request));
  }
  return true;
}

}  // namespace

bool all_end_in_time(const ModelState& state, const Requests& requests, const std::vector<TimePoint>& free) {
  return end_in_time(state, requests, free, [&](const Member& request) { return state.expected(request); });
}

bool surely_end_in_time(const ModelState& state, const Requests& requests, const std::vector<TimePoint>& free) {
  return end_in_time(state, requests, free,
                     [&](const Member& request) { return state.rates().at_most(request.tenant.app); });
}

std::optional<TimePoint> surely_free_at(const ModelState& state, const ModelState::Place& place, TimePoint now) {
  const Member* holder = state.holder_of(place);
  if (!holder || !holder->working || !state.is_request(*holder)) return state.free_at(place, now);
  const TimePoint end = place.lent + state.rates().at_most(holder->tenant.app);
  return end < now ? std::nullopt : std::optional(end);
}

}  // namespace heddle::policy
