#include "client/api/graph_edges.h"

#include <algorithm>

#include "client/api/submit.h"

namespace heddle::client {
namespace {

using Edge = std::pair<GraphNode*, GraphNode*>;

Answer<std::vector<Edge>> read_edges(cudaGraph_t handle, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edges, size_t count) {
  auto graph = resolve_graph(handle);
  if (!graph) return tl::unexpected(std::move(graph).error());
  if (count > 0 && (!from || !to)) return refuse(cudaErrorInvalidValue);
  HEDDLE_ANSWER(check_edges(edges, count));
  std::vector<Edge> read;
  for (size_t i = 0; i < count; ++i) {
    auto first = read_nodes(**graph, from + i, 1), second = read_nodes(**graph, to + i, 1);
    if (!first || !second || first->front() == second->front()) return refuse(cudaErrorInvalidValue);
    read.emplace_back(first->front(), second->front());
  }
  return read;
}

void clear(cudaGraphEdgeData* edges, size_t count) {
  if (edges) std::fill_n(edges, count, cudaGraphEdgeData{});
}

}  // namespace

Done add_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
               const cudaGraphEdgeData* edges, size_t count) {
  const auto read = read_edges(graph, from, to, edges, count);
  if (!read) return tl::unexpected(read.error());
  for (const auto& [first, second] : *read) {
    if (!Graph::connect(first, second)) return refuse(cudaErrorInvalidValue);
  }
  return {};
}

Done remove_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                  const cudaGraphEdgeData* edges, size_t count) {
  const auto read = read_edges(graph, from, to, edges, count);
  if (!read) return tl::unexpected(read.error());
  if (!read->empty()) HEDDLE_ANSWER(check_removal(*read->front().first->graph));
  for (const auto& [first, second] : *read) {
    if (!Graph::disconnect(first, second)) return refuse(cudaErrorInvalidValue);
  }
  return {};
}

Done list_edges(cudaGraph_t handle, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                size_t* count) {
  auto graph = resolve_graph(handle);
  if (!graph) return tl::unexpected(std::move(graph).error());
  if (!count || !from != !to) return refuse(cudaErrorInvalidValue);
  std::vector<GraphNode*> firsts, seconds;
  for (const auto& node : (*graph)->nodes()) {
    for (GraphNode* before : node->dependencies) {
      firsts.push_back(before);
      seconds.push_back(node.get());
    }
  }
  size_t room = *count;
  if (from) clear(edges, std::min(room, firsts.size()));
  HEDDLE_ANSWER(list_nodes(firsts, from, &room));
  return list_nodes(seconds, to, count);
}

Done list_neighbours(cudaGraphNode_t handle, Neighbours which, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                     size_t* count) {
  auto node = resolve_node(handle);
  if (!node) return tl::unexpected(std::move(node).error());
  const auto found = which == Neighbours::kBefore ? (*node)->dependencies : (*node)->graph->dependents(*node);
  HEDDLE_ANSWER(list_nodes(found, nodes, count));
  if (nodes) clear(edges, *count);
  return {};
}

Done update_capture(cudaStream_t stream, const cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges, size_t count,
                    unsigned flags) {
  auto resolved = enter_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  if (flags > cudaStreamSetCaptureDependencies || (count > 0 && !nodes)) return refuse(cudaErrorInvalidValue);
  HEDDLE_ANSWER(check_edges(edges, count));
  std::vector<GraphNode*> read;
  for (size_t i = 0; i < count; ++i) {
    auto node = resolve_node(nodes[i]);
    if (!node) return tl::unexpected(std::move(node).error());
    read.push_back(*node);
  }
  return captures().set_dependencies(*resolved, read, flags == cudaStreamSetCaptureDependencies);
}

Done tell_capture(cudaStream_t stream, const CaptureAnswer& to) {
  auto resolved = enter_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  if (!to.status) return refuse(cudaErrorInvalidValue);
  const Captures::Info info = captures().info(*resolved);
  *to.status = info.status;
  if (to.id) *to.id = info.id;
  if (to.graph) *to.graph = handle_of(info.graph);
  // Handles are the nodes' addresses: the list of nodes is the list of handles.
  const size_t count = info.dependencies ? info.dependencies->size() : 0;
  if (to.nodes) *to.nodes = count > 0 ? reinterpret_cast<const cudaGraphNode_t*>(info.dependencies->data()) : nullptr;
  if (to.edges) *to.edges = nullptr;
  if (to.count) *to.count = count;
  return {};
}

}  // namespace heddle::client
