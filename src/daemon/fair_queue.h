#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace heddle::daemon {

// Requests of users: first in, first out for each user, one request of each user in turn. However many requests one
// user has waiting, another user waits for one of them and not for all.
template <class T>
class FairQueue {
 public:
  void push(uid_t user, T value) {
    std::deque<T>& line = lines_[user];
    if (line.empty()) turns_.push_back(user);
    line.push_back(std::move(value));
  }
  std::optional<T> pop() {
    if (turns_.empty()) return std::nullopt;
    const uid_t user = turns_.front();
    turns_.pop_front();
    const auto line = lines_.find(user);
    T value = std::move(line->second.front());
    line->second.pop_front();
    if (line->second.empty()) {
      lines_.erase(line);
    } else {
      turns_.push_back(user);
    }
    return value;
  }
  bool empty() const { return turns_.empty(); }
  size_t waiting(uid_t user) const {
    const auto line = lines_.find(user);
    return line == lines_.end() ? 0 : line->second.size();
  }

 private:
  std::map<uid_t, std::deque<T>> lines_;  // none is empty
  std::deque<uid_t> turns_;               // users with a line, who is next first
};

}  // namespace heddle::daemon
