#include "policy/waiting.h"

#include <algorithm>

namespace heddle::policy {

void Line::add(const WaitKey& key, Wait wait) {
  fresh.push_back(key);
  stand(key, waits_.emplace(key, std::move(wait)).first->second);
}

Wait Line::remove(const WaitKey& key) {
  const auto it = waits_.find(key);
  step_out(key, it->second);
  Wait wait = std::move(it->second);
  waits_.erase(it);
  return wait;
}

void Line::set_need(const WaitKey& key, std::optional<Need> need, bool set_aside) {
  Wait& wait = waits_.at(key);
  if (wait.need == need && wait.set_aside == set_aside) return;
  step_out(key, wait);
  if (need) wait.why = {};  // what was said of the old need; it is asked for again
  wait.need = need;
  wait.set_aside = set_aside;
  stand(key, wait);
}

void Line::stand(const WaitKey& key, const Wait& wait) {
  if (wait.set_aside) {
    set_aside_[{wait.session, wait.virtual_device}] = key;
    return;
  }
  if (wait.need) {
    alike_[*wait.need].keys.insert(key);
  } else {
    others_.insert(key);
  }
}

void Line::step_out(const WaitKey& key, Wait& wait) {
  if (wait.set_aside) {
    set_aside_.erase({wait.session, wait.virtual_device});
    return;
  }
  if (!wait.need) {
    others_.erase(key);
    return;
  }
  const auto it = alike_.find(*wait.need);
  if (wait.why.empty()) wait.why = it->second.why;
  it->second.keys.erase(key);
  if (it->second.keys.empty()) alike_.erase(it);
}

std::map<WaitKey, Wait>::const_iterator Line::oldest(const UserMemory& users) const {
  if (users.most().value == 0) return waits_.begin();
  auto oldest = waits_.end();
  const auto consider = [&](const WaitKey& key) {
    if (oldest != waits_.end() && oldest->first < key) return;
    const auto it = waits_.find(key);
    if (!users.over(it->second.session, it->second.memory)) oldest = it;
  };
  for (const auto& [need, those] : alike_) consider(*those.keys.begin());
  for (const WaitKey& key : others_) consider(key);
  return oldest;
}

Pass::Pass(const Line& line) : line_(line), whole_(true) {
  for (const auto& [need, those] : line.alike()) heads_.push_back({*those.keys.begin(), need});
  std::make_heap(heads_.begin(), heads_.end());
}

std::optional<WaitKey> Pass::next() {
  drop_stale();
  std::optional<WaitKey> next;
  need_.reset();
  if (!first_.empty()) {
    next = first_.front();
    first_.pop_front();
    extra_.erase(*next);
    return next;
  }
  const auto consider = [&](const WaitKey& key) {
    const bool earlier = !next || key < *next;
    if (earlier) next = key;
    return earlier;
  };
  if (!extra_.empty()) consider(*extra_.begin());
  if (whole_) {
    const auto& others = line_.others();
    const auto other = last_ ? others.upper_bound(*last_) : others.begin();
    if (other != others.end()) consider(*other);
  }
  if (!heads_.empty() && consider(heads_.front().key)) {
    need_ = heads_.front().need;
    std::pop_heap(heads_.begin(), heads_.end());
    heads_.pop_back();
  }
  if (next) {
    extra_.erase(*next);
    // One that came with a decision may be older than the last: those behind the last stay behind it.
    last_ = last_ ? std::max(*last_, *next) : *next;
  }
  return next;
}

void Pass::waits(bool alike) {
  if (!need_) return;
  if (alike) {
    passed_over_.push_back(*need_);
  } else {
    put_back(*need_);
  }
}

void Pass::decided(const std::vector<WaitKey>& fresh) {
  if (need_) put_back(*need_);
  for (const Need& need : std::exchange(passed_over_, {})) put_back(need);
  extra_.insert(fresh.begin(), fresh.end());
}

// Those behind the last one are to be attempted.
void Pass::put_back(const Need& need) {
  const auto those = line_.alike().find(need);
  if (those == line_.alike().end()) return;
  const auto& keys = those->second.keys;
  const auto key = last_ ? keys.upper_bound(*last_) : keys.begin();
  if (key == keys.end()) return;
  heads_.push_back({*key, need});
  std::push_heap(heads_.begin(), heads_.end());
}

// A request whose session holds something since then no longer stands with its need.
void Pass::drop_stale() {
  while (!heads_.empty()) {
    const Head head = heads_.front();
    const auto those = line_.alike().find(head.need);
    if (those != line_.alike().end() && those->second.keys.contains(head.key)) return;
    std::pop_heap(heads_.begin(), heads_.end());
    heads_.pop_back();
    put_back(head.need);
  }
}

}  // namespace heddle::policy
