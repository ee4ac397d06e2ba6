#include "policy/deadline/request_rates.h"

#include <algorithm>
#include <numeric>

namespace heddle::policy {
namespace {

double in_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

int64_t second_of(TimePoint now) {
  return now.time_since_epoch() / std::chrono::seconds(1);
}

}  // namespace

Duration RequestRates::Latest::ranked(uint64_t place) const {
  auto sorted = busy;
  const auto wanted = sorted.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(sorted.begin(), wanted, sorted.begin() + static_cast<std::ptrdiff_t>(remembered()));
  return *wanted;
}

Duration RequestRates::Latest::mean() const {
  const auto many = static_cast<std::ptrdiff_t>(remembered());
  return std::accumulate(busy.begin(), busy.begin() + many, Duration{}) / many;
}

RequestRates::Second& RequestRates::at(TimePoint now) {
  const int64_t number = second_of(now);
  Second& second = seconds_[static_cast<size_t>(number) % kSeconds];
  if (second.number != number) second = {.number = number};
  return second;
}

void RequestRates::arrived(TimePoint now) {
  first_ = std::min(first_, now);
  ++at(now).arrivals;
}

void RequestRates::finished(const std::string& app, Duration busy, TimePoint now) {
  Second& second = at(now);
  ++second.finished;
  second.busy += in_seconds(busy);
  all_.add(busy);
  const auto known = apps_.find(app);
  if (known != apps_.end()) return known->second.add(busy);
  if (apps_.size() < kMostApps) apps_[app].add(busy);
}

double RequestRates::load(TimePoint now) const {
  double arrivals = 0, count = 0, busy = 0;
  for (const Second& second : seconds_) {
    if (second.number <= second_of(now) - static_cast<int64_t>(kSeconds)) continue;
    arrivals += static_cast<double>(second.arrivals);
    count += static_cast<double>(second.finished);
    busy += second.busy;
  }
  if (arrivals == 0 || count == 0) return 0;
  // The present second is under way, the others of the window are whole.
  const double window = std::clamp(in_seconds(now - first_), 1.0, static_cast<double>(kSeconds) - 0.5);
  return arrivals / window * (busy / count);
}

const RequestRates::Latest* RequestRates::known(const std::string& app) const {
  const auto found = apps_.find(app);
  return found != apps_.end() && found->second.says_something() ? &found->second : nullptr;
}

Duration RequestRates::expected(const std::string& app) const {
  const Latest* its = known(app);
  return its ? its->ranked((its->remembered() - 1) / 2) : of_all();
}

Duration RequestRates::at_most(const std::string& app) const {
  const Latest* its = known(app);
  return its ? its->ranked(its->remembered() - 2) : of_all();
}

}  // namespace heddle::policy
