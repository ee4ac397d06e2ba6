#pragma once

#include "client/graph/graph.h"

// Lists of nodes that cross the API.
namespace heddle::client {

// The nodes of that graph that an array names, each once. cudaErrorInvalidValue for anything else.
Answer<std::vector<GraphNode*>> read_nodes(const Graph& graph, const cudaGraphNode_t* nodes, size_t count);
// The work of a node, where it is of type W.
template <class W>
Answer<W*> work_of(cudaGraphNode_t handle) {
  auto node = resolve_node(handle);
  if (!node) return tl::unexpected(std::move(node).error());
  W* const work = std::get_if<W>(&(*node)->work);
  if (!work) return refuse(cudaErrorInvalidValue);
  return work;
}

// Where a new node comes.
struct NewNode {
  cudaGraphNode_t* made;
  cudaGraph_t graph;
  const cudaGraphNode_t* dependencies;
  size_t count;
};
// `make(graph, dependencies)` gives its work.
template <class Make>
Done add_made(const NewNode& at, Make&& make) {
  auto graph = resolve_graph(at.graph);
  if (!graph) return tl::unexpected(std::move(graph).error());
  if (!at.made) return refuse(cudaErrorInvalidValue);
  auto dependencies = read_nodes(**graph, at.dependencies, at.count);
  if (!dependencies) return tl::unexpected(std::move(dependencies).error());
  Answer<Work> work = make(**graph, *dependencies);
  if (!work) return tl::unexpected(std::move(work).error());
  *at.made = handle_of((*graph)->add(std::move(*work), std::move(*dependencies)));
  return {};
}

// As CUDA fills arrays: with null, `count` becomes what there is; otherwise `count` entries are written, null where
// there are no more, and `count` becomes what was written.
Done list_nodes(const Answer<std::vector<GraphNode*>>& found, cudaGraphNode_t* nodes, size_t* count);

// Nothing is taken out of a graph that allocates or frees memory: its addresses follow from its order.
Done check_removal(const Graph& graph);
// Edges that wait for less than the whole node before are refused by name.
Done check_edges(const cudaGraphEdgeData* edges, size_t count);

}  // namespace heddle::client
