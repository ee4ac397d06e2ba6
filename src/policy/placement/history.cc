#include "policy/placement/history.h"

#include <algorithm>
#include <cmath>

namespace heddle::policy {
namespace {

constexpr uint64_t kRememberedApps = 8;  // jobs
constexpr size_t kMostApps = 1024;       // names are the users': beyond, the one unused for longest is forgotten

}  // namespace

bool History::Entry::is_possible() const {
  return jobs > 0 && std::isfinite(busy) && busy >= 0 && utilization >= 0 && utilization <= 1 && by_host >= 0 &&
         by_host <= kMostByHost;
}

void History::add(const std::string& app, double busy, double utilization, double by_host) {
  Entry& entry = entries_[app];
  const auto weight = static_cast<double>(std::min(++entry.jobs, kRememberedApps));
  entry.busy += (busy - entry.busy) / weight;
  entry.utilization += (std::min(1.0, utilization) - entry.utilization) / weight;
  entry.by_host += (std::min(kMostByHost, by_host) - entry.by_host) / weight;
  entry.latest = ++added_;
  forget_beyond_most();
}

void History::restore(const KnownApp& known) {
  Entry& entry = entries_[known.app];
  entry = known.entry;
  entry.latest = ++added_;
  forget_beyond_most();
}

std::vector<KnownApp> History::known() const {
  std::vector<KnownApp> all;
  all.reserve(entries_.size());
  for (const auto& [app, entry] : entries_) all.push_back({app, entry});
  std::sort(all.begin(), all.end(),
            [](const KnownApp& a, const KnownApp& b) { return a.entry.latest < b.entry.latest; });
  return all;
}

void History::forget_beyond_most() {
  if (entries_.size() <= kMostApps) return;
  entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                  [](const auto& a, const auto& b) { return a.second.latest < b.second.latest; }));
}

std::optional<History::Entry> History::of(const std::string& app) const {
  const auto found = entries_.find(app);
  if (found == entries_.end()) return {};
  return found->second;
}

History::Entry History::mean() const {
  Entry mean;
  for (const auto& [app, entry] : entries_) {
    mean.busy += entry.busy;
    mean.utilization += entry.utilization;
    mean.by_host += entry.by_host;
  }
  if (entries_.empty()) return mean;
  mean.jobs = entries_.size();
  mean.busy /= static_cast<double>(entries_.size());
  mean.utilization /= static_cast<double>(entries_.size());
  mean.by_host /= static_cast<double>(entries_.size());
  return mean;
}

}  // namespace heddle::policy
