#include "policy/components.h"

#include <gtest/gtest.h>

#include <random>

namespace heddle::policy {
namespace {

// What the definition says, at any cost.
std::vector<std::vector<bool>> reachable(const Edges& edges) {
  std::vector<std::vector<bool>> reach(edges.size(), std::vector<bool>(edges.size()));
  for (size_t from = 0; from < edges.size(); ++from) {
    std::vector<size_t> open{from};
    reach[from][from] = true;
    while (!open.empty()) {
      const size_t node = open.back();
      open.pop_back();
      for (const size_t to : edges[node]) {
        if (reach[from][to]) continue;
        reach[from][to] = true;
        open.push_back(to);
      }
    }
  }
  return reach;
}

TEST(Components, AreThoseOfTheDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const size_t nodes = 1 + random() % 12;
    Edges edges(nodes);
    for (size_t i = random() % (2 * nodes); i > 0; --i) edges[random() % nodes].push_back(random() % nodes);
    const Components found = components(edges);
    const auto reach = reachable(edges);
    for (size_t a = 0; a < nodes; ++a) {
      bool outside = false;
      for (size_t b = 0; b < nodes; ++b) {
        EXPECT_EQ(found.of[a] == found.of[b], reach[a][b] && reach[b][a]) << "round " << round;
        outside = outside || (reach[a][b] && !reach[b][a]);
      }
      EXPECT_EQ(found.leads_outside[found.of[a]], outside) << "round " << round;
    }
  }
}

TEST(Components, OfALongChainNeedNoStack) {
  Edges edges(200'000);
  for (size_t i = 0; i + 1 < edges.size(); ++i) edges[i].push_back(i + 1);
  const Components found = components(edges);
  EXPECT_TRUE(found.leads_outside[found.of.front()]);
  EXPECT_FALSE(found.leads_outside[found.of.back()]);
}

}  // namespace
}  // namespace heddle::policy
