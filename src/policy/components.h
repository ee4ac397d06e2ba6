#pragma once

#include <cstddef>
#include <vector>

namespace heddle::policy {

// A directed graph: for each node the nodes that its edges lead to.
using Edges = std::vector<std::vector<size_t>>;

// The strongly connected components of a graph (Tarjan's algorithm; linear in nodes and edges).
struct Components {
  std::vector<size_t> of;           // by node: its component
  std::vector<bool> leads_outside;  // by component: whether an edge leaves it
};
Components components(const Edges& edges);

}  // namespace heddle::policy
