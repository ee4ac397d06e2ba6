#include "policy/deadline/elastic.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "policy/deadline/end_in_time.h"

namespace heddle::policy {
namespace {

constexpr double kFullest = 0.8;  // of the reserved devices' time
// A device that batch has for a shorter time is often revoked in the middle of a kernel. With kernels of 1 to 4 s, and
// devices taken back that other devices would have done for, 3.3 percent of batch work was run again at 1 s and 2.0 at
// 4 s, and batch got about as much done (docs/results/2026-11-26-trem-software.md).
constexpr Duration kShrinkAfter = std::chrono::seconds(4);
constexpr Duration kLookEvery = std::chrono::milliseconds(500);

}  // namespace

// Those that are reserved, then those that cost least.
std::vector<ModelState::Place*> Elastic::by_cost() {
  std::vector<Place*> all;
  for (Place& place : state().places()) all.push_back(&place);
  const auto cost = [&](const Place& place) {
    const auto* batch = state().has_batch(place) ? state().holder_of(place) : nullptr;
    return std::tuple(!place.reserved, batch != nullptr, !state().has_request(place), batch && batch->exposed,
                      batch ? batch->uncommitted : Duration{}, place.id);
  };
  std::sort(all.begin(), all.end(), [&](const Place* one, const Place* other) { return cost(*one) < cost(*other); });
  return all;
}

void Elastic::reserve(TimePoint now) {
  const std::vector<Place*> all = by_cost();
  const auto reserved =
      static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const Place* place) { return place->reserved; }));
  const size_t load = std::min(all.size(), static_cast<size_t>(std::ceil(state().rates().load(now) / kFullest)));
  const bool any_hopeful = planned_requests().size() < live_requests().size();
  size_t k = std::max(load, size_t{any_hopeful});
  const auto are_enough = [&](size_t count) {
    std::vector<TimePoint> free;
    for (size_t at = 0; at < all.size(); ++at) {
      if (at < count || !state().has_batch(*all[at])) free.push_back(state().free_at(*all[at], now));
    }
    return all_end_in_time(state(), planned_requests(), free);
  };
  while (k < all.size() && !are_enough(k)) ++k;

  if (k >= reserved) {
    fewer_since_.reset();
  } else if (now - *(fewer_since_ = fewer_since_.value_or(now)) < kShrinkAfter) {
    k = reserved;
  }
  for (size_t at = 0; at < all.size(); ++at) all[at]->reserved = at < k;
}

std::optional<TimePoint> Elastic::next_reservation(TimePoint now) const {
  const auto& all = state().places();
  const bool any = std::any_of(all.begin(), all.end(), [](const Place& place) { return place.reserved; });
  return any ? std::optional(now + kLookEvery) : std::nullopt;
}

}  // namespace heddle::policy
