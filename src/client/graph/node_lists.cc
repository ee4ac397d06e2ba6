#include "client/graph/node_lists.h"

#include <algorithm>

namespace heddle::client {

Answer<std::vector<GraphNode*>> read_nodes(const Graph& graph, const cudaGraphNode_t* nodes, size_t count) {
  std::vector<GraphNode*> read;
  if (count > 0 && !nodes) return refuse(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; ++i) {
    auto node = resolve_node(nodes[i]);
    if (!node) return tl::unexpected(std::move(node).error());
    const bool twice = std::find(read.begin(), read.end(), *node) != read.end();
    if ((*node)->graph != &graph || twice) return refuse(cudaErrorInvalidValue);
    read.push_back(*node);
  }
  return read;
}

Done list_nodes(const Answer<std::vector<GraphNode*>>& found, cudaGraphNode_t* nodes, size_t* count) {
  if (!found) return tl::unexpected(found.error());
  if (!count) return refuse(cudaErrorInvalidValue);
  if (nodes) {
    for (size_t i = 0; i < *count; ++i) nodes[i] = i < found->size() ? handle_of((*found)[i]) : nullptr;
    *count = std::min(*count, found->size());
  } else {
    *count = found->size();
  }
  return {};
}

Done check_removal(const Graph& graph) {
  if (!graph.has_memory_nodes()) return {};
  return refuse(cudaErrorInvalidValue,
                "nodes and edges of a CUDA graph that allocates or frees memory cannot be taken out of it");
}

Done check_edges(const cudaGraphEdgeData* edges, size_t count) {
  for (size_t i = 0; edges && i < count; ++i) {
    if (edges[i].from_port != 0 || edges[i].to_port != 0 || edges[i].type != 0)
      return refuse(cudaErrorNotSupported,
                    "programmatic dependencies between the nodes of a CUDA graph are not supported");
  }
  return {};
}

}  // namespace heddle::client
