#include "policy/components.h"

#include <algorithm>
#include <limits>

namespace heddle::policy {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

// Without recursion: a chain of waits may be as long as there are sessions.
class Search {
 public:
  explicit Search(const Edges& edges)
      : edges_(edges), number_(edges.size(), kNone), low_(edges.size()), next_edge_(edges.size()) {
    found_.of.assign(edges.size(), kNone);
  }

  Components run() {
    for (size_t node = 0; node < edges_.size(); ++node) {
      if (number_[node] == kNone) visit(node);
    }
    for (size_t node = 0; node < edges_.size(); ++node) {
      for (const size_t to : edges_[node]) {
        if (found_.of[to] != found_.of[node]) found_.leads_outside[found_.of[node]] = true;
      }
    }
    return std::move(found_);
  }

 private:
  void visit(size_t root) {
    enter(root);
    while (!path_.empty()) {
      const size_t node = path_.back();
      if (next_edge_[node] < edges_[node].size()) {
        const size_t to = edges_[node][next_edge_[node]++];
        if (number_[to] == kNone) {
          enter(to);
        } else if (found_.of[to] == kNone) {
          low_[node] = std::min(low_[node], number_[to]);
        }
      } else {
        leave(node);
      }
    }
  }
  void enter(size_t node) {
    number_[node] = low_[node] = count_++;
    path_.push_back(node);
    open_.push_back(node);
  }
  void leave(size_t node) {
    path_.pop_back();
    if (!path_.empty()) low_[path_.back()] = std::min(low_[path_.back()], low_[node]);
    if (low_[node] != number_[node]) return;
    const size_t component = found_.leads_outside.size();
    found_.leads_outside.push_back(false);
    for (size_t member = kNone; member != node;) {
      member = open_.back();
      open_.pop_back();
      found_.of[member] = component;
    }
  }

  const Edges& edges_;
  std::vector<size_t> number_, low_, next_edge_;
  std::vector<size_t> path_, open_;  // from the root to where the search is; nodes without a component yet
  size_t count_ = 0;
  Components found_;
};

}  // namespace

Components components(const Edges& edges) {
  return Search(edges).run();
}

}  // namespace heddle::policy
