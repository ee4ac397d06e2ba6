// Functions of graphs and captures that CUDA 13 gave other parameters: edges carry data since. CUDA 12 knows the new
// forms by the names with _v2 and _v3.

#include "client/api/graph_edges.h"

namespace heddle::client {

using Nodes = cudaGraphNode_t*;
using ConstNodes = const cudaGraphNode_t*;
using Edges = cudaGraphEdgeData*;
using ConstEdges = const cudaGraphEdgeData*;

#if HEDDLE_CUDART_MAJOR == 12
#define HEDDLE_WITH_EDGES(name) name##_v2
#define HEDDLE_CAPTURE_INFO cudaStreamGetCaptureInfo_v3
#define HEDDLE_CAPTURE_INFO_PTSZ cudaStreamGetCaptureInfo_v3_ptsz
#define HEDDLE_UPDATE_PTSZ cudaStreamUpdateCaptureDependencies_v2_ptsz
#else
#define HEDDLE_WITH_EDGES(name) name
#define HEDDLE_CAPTURE_INFO cudaStreamGetCaptureInfo
#define HEDDLE_CAPTURE_INFO_PTSZ cudaStreamGetCaptureInfo_ptsz
#define HEDDLE_UPDATE_PTSZ cudaStreamUpdateCaptureDependencies_ptsz
#endif

HEDDLE_EXPORT cudaError_t HEDDLE_WITH_EDGES(cudaGraphAddNode)(Nodes made, cudaGraph_t graph, ConstNodes before,
                                                              ConstEdges edges, size_t count, cudaGraphNodeParams* p) {
  return answer([&] { return add_node(made, graph, before, edges, count, p); });
}
HEDDLE_EXPORT cudaError_t HEDDLE_WITH_EDGES(cudaGraphAddDependencies)(cudaGraph_t graph, ConstNodes from, ConstNodes to,
                                                                      ConstEdges edges, size_t count) {
  return answer([&] { return add_edges(graph, from, to, edges, count); });
}
HEDDLE_EXPORT cudaError_t HEDDLE_WITH_EDGES(cudaGraphRemoveDependencies)(cudaGraph_t graph, ConstNodes from,
                                                                         ConstNodes to, ConstEdges edges,
                                                                         size_t count) {
  return answer([&] { return remove_edges(graph, from, to, edges, count); });
}
HEDDLE_EXPORT cudaError_t HEDDLE_WITH_EDGES(cudaGraphGetEdges)(cudaGraph_t graph, Nodes from, Nodes to, Edges edges,
                                                               size_t* count) {
  return answer([&] { return list_edges(graph, from, to, edges, count); });
}
HEDDLE_EXPORT cudaError_t HEDDLE_WITH_EDGES(cudaGraphNodeGetDependencies)(cudaGraphNode_t node, Nodes nodes,
                                                                          Edges edges, size_t* count) {
  return answer([&] { return list_neighbours(node, Neighbours::kBefore, nodes, edges, count); });
}
HEDDLE_EXPORT cudaError_t HEDDLE_WITH_EDGES(cudaGraphNodeGetDependentNodes)(cudaGraphNode_t node, Nodes nodes,
                                                                            Edges edges, size_t* count) {
  return answer([&] { return list_neighbours(node, Neighbours::kAfter, nodes, edges, count); });
}
HEDDLE_EXPORT cudaError_t HEDDLE_WITH_EDGES(cudaStreamUpdateCaptureDependencies)(cudaStream_t stream, Nodes nodes,
                                                                                 ConstEdges edges, size_t count,
                                                                                 unsigned flags) {
  return answer([&] { return update_capture(stream, nodes, edges, count, flags); });
}
HEDDLE_EXPORT cudaError_t HEDDLE_CAPTURE_INFO(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                              unsigned long long* id, cudaGraph_t* graph, ConstNodes* nodes,
                                              ConstEdges* edges, size_t* count) {
  return answer([&] { return tell_capture(stream, {status, id, graph, nodes, edges, count}); });
}
HEDDLE_EXPORT cudaError_t HEDDLE_UPDATE_PTSZ(cudaStream_t stream, Nodes nodes, ConstEdges edges, size_t count,
                                             unsigned flags) {
  const PerThreadDefault scope;
  return HEDDLE_WITH_EDGES(cudaStreamUpdateCaptureDependencies)(stream, nodes, edges, count, flags);
}
HEDDLE_EXPORT cudaError_t HEDDLE_CAPTURE_INFO_PTSZ(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                   unsigned long long* id, cudaGraph_t* graph, ConstNodes* nodes,
                                                   ConstEdges* edges, size_t* count) {
  const PerThreadDefault scope;
  return HEDDLE_CAPTURE_INFO(stream, status, id, graph, nodes, edges, count);
}

#if HEDDLE_CUDART_MAJOR == 12
HEDDLE_EXPORT cudaError_t cudaGraphAddNode(Nodes made, cudaGraph_t graph, ConstNodes before, size_t count,
                                           cudaGraphNodeParams* p) {
  return answer([&] { return add_node(made, graph, before, nullptr, count, p); });
}
HEDDLE_EXPORT cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, ConstNodes from, ConstNodes to, size_t count) {
  return answer([&] { return add_edges(graph, from, to, nullptr, count); });
}
HEDDLE_EXPORT cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, ConstNodes from, ConstNodes to, size_t count) {
  return answer([&] { return remove_edges(graph, from, to, nullptr, count); });
}
HEDDLE_EXPORT cudaError_t cudaGraphGetEdges(cudaGraph_t graph, Nodes from, Nodes to, size_t* count) {
  return answer([&] { return list_edges(graph, from, to, nullptr, count); });
}
HEDDLE_EXPORT cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, Nodes nodes, size_t* count) {
  return answer([&] { return list_neighbours(node, Neighbours::kBefore, nodes, nullptr, count); });
}
HEDDLE_EXPORT cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, Nodes nodes, size_t* count) {
  return answer([&] { return list_neighbours(node, Neighbours::kAfter, nodes, nullptr, count); });
}
HEDDLE_EXPORT cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, Nodes nodes, size_t count,
                                                              unsigned flags) {
  return answer([&] { return update_capture(stream, nodes, nullptr, count, flags); });
}
HEDDLE_EXPORT cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream, Nodes nodes, size_t count,
                                                                   unsigned flags) {
  const PerThreadDefault scope;
  return cudaStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}
HEDDLE_EXPORT cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                      unsigned long long* id, cudaGraph_t* graph, ConstNodes* nodes,
                                                      size_t* count) {
  return answer([&] { return tell_capture(stream, {status, id, graph, nodes, nullptr, count}); });
}
HEDDLE_EXPORT cudaError_t cudaStreamGetCaptureInfo_v2_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                           unsigned long long* id, cudaGraph_t* graph,
                                                           ConstNodes* nodes, size_t* count) {
  const PerThreadDefault scope;
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count);
}
HEDDLE_EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                   unsigned long long* id) {
  return answer([&] { return tell_capture(stream, {status, id, nullptr, nullptr, nullptr, nullptr}); });
}
HEDDLE_EXPORT cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                        unsigned long long* id) {
  const PerThreadDefault scope;
  return cudaStreamGetCaptureInfo(stream, status, id);
}
#endif

}  // namespace heddle::client
