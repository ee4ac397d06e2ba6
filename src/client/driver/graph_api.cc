// Graphs: making and launching them. They are the runtime's; what their nodes do is in node_api.cc.

#include "client/api/graph_edges.h"
#include "client/driver/contexts.h"
#include "client/driver/functions.h"
#include "client/driver/runtime_functions.h"

namespace heddle::client {
namespace {

using Nodes = cudaGraphNode_t*;
using ConstNodes = const cudaGraphNode_t*;
using Edges = cudaGraphEdgeData*;
using ConstEdges = const cudaGraphEdgeData*;

// --- in the forms of CUDA before 12 ---
CUresult instantiate(cudaGraphExec_t* made, cudaGraph_t graph, cudaGraphNode_t* error_node, char* log, size_t bytes) {
  if (error_node) *error_node = nullptr;
  if (log && bytes > 0) *log = '\0';
  return Same<&cudaGraphInstantiateWithFlags>::call(made, graph, 0);
}

CUresult update(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t* error_node,
                cudaGraphExecUpdateResult* result) {
  cudaGraphExecUpdateResultInfo info{};
  const CUresult updated = Same<&cudaGraphExecUpdate>::call(exec, graph, &info);
  if (error_node) *error_node = info.errorNode;
  if (result) *result = info.result;
  return updated;
}

CUresult launch(cudaGraphExec_t exec, cudaStream_t stream) {
  return in_stream(stream, [&] { return cudaGraphLaunch(exec, stream); });
}

CUresult upload(cudaGraphExec_t exec, cudaStream_t stream) {
  return in_stream(stream, [&] { return cudaGraphUpload(exec, stream); });
}

// --- edges ---
CUresult add_plain_edges(cudaGraph_t graph, ConstNodes from, ConstNodes to, size_t count) {
  return in_driver([&] { return add_edges(graph, from, to, nullptr, count); });
}
CUresult add_data_edges(cudaGraph_t graph, ConstNodes from, ConstNodes to, ConstEdges edges, size_t count) {
  return in_driver([&] { return add_edges(graph, from, to, edges, count); });
}
CUresult remove_plain_edges(cudaGraph_t graph, ConstNodes from, ConstNodes to, size_t count) {
  return in_driver([&] { return remove_edges(graph, from, to, nullptr, count); });
}
CUresult remove_data_edges(cudaGraph_t graph, ConstNodes from, ConstNodes to, ConstEdges edges, size_t count) {
  return in_driver([&] { return remove_edges(graph, from, to, edges, count); });
}
CUresult plain_edges(cudaGraph_t graph, Nodes from, Nodes to, size_t* count) {
  return in_driver([&] { return list_edges(graph, from, to, nullptr, count); });
}
CUresult data_edges(cudaGraph_t graph, Nodes from, Nodes to, Edges edges, size_t* count) {
  return in_driver([&] { return list_edges(graph, from, to, edges, count); });
}

template <Neighbours kWhich>
CUresult neighbours(cudaGraphNode_t node, Nodes nodes, size_t* count) {
  return in_driver([&] { return list_neighbours(node, kWhich, nodes, nullptr, count); });
}
template <Neighbours kWhich>
CUresult neighbours_with_edges(cudaGraphNode_t node, Nodes nodes, Edges edges, size_t* count) {
  return in_driver([&] { return list_neighbours(node, kWhich, nodes, edges, count); });
}

CUresult create_condition(cudaGraphConditionalHandle* made, cudaGraph_t graph, CUcontext, unsigned value,
                          unsigned flags) {
  return in_context([&] { return cudaGraphConditionalHandleCreate(made, graph, value, flags); });
}

}  // namespace

std::span<const DriverFunction> driver_graph_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuGraphCreate, 10000, SameAnywhere<&cudaGraphCreate>::call),
      HEDDLE_DRIVER(cuGraphDestroy, 10000, SameAnywhere<&cudaGraphDestroy>::call),
      HEDDLE_DRIVER(cuGraphClone, 10000, SameAnywhere<&cudaGraphClone>::call),
      HEDDLE_DRIVER(cuGraphNodeFindInClone, 10000, SameAnywhere<&cudaGraphNodeFindInClone>::call),
      HEDDLE_DRIVER(cuGraphGetNodes, 10000, SameAnywhere<&cudaGraphGetNodes>::call),
      HEDDLE_DRIVER(cuGraphGetRootNodes, 10000, SameAnywhere<&cudaGraphGetRootNodes>::call),
      HEDDLE_DRIVER(cuGraphDebugDotPrint, 11030, SameAnywhere<&cudaGraphDebugDotPrint>::call),
      HEDDLE_DRIVER(cuUserObjectCreate, 11030, SameAnywhere<&cudaUserObjectCreate>::call),
      HEDDLE_DRIVER(cuUserObjectRetain, 11030, SameAnywhere<&cudaUserObjectRetain>::call),
      HEDDLE_DRIVER(cuUserObjectRelease, 11030, SameAnywhere<&cudaUserObjectRelease>::call),
      HEDDLE_DRIVER(cuGraphRetainUserObject, 11030, SameAnywhere<&cudaGraphRetainUserObject>::call),
      HEDDLE_DRIVER(cuGraphReleaseUserObject, 11030, SameAnywhere<&cudaGraphReleaseUserObject>::call),
      HEDDLE_DRIVER(cuGraphAddDependencies, 10000, add_plain_edges),
      HEDDLE_DRIVER(cuGraphAddDependencies_v2, 12030, add_data_edges),
      HEDDLE_DRIVER(cuGraphRemoveDependencies, 10000, remove_plain_edges),
      HEDDLE_DRIVER(cuGraphRemoveDependencies_v2, 12030, remove_data_edges),
      HEDDLE_DRIVER(cuGraphGetEdges, 10000, plain_edges),
      HEDDLE_DRIVER(cuGraphGetEdges_v2, 12030, data_edges),
      HEDDLE_DRIVER(cuGraphNodeGetDependencies, 10000, neighbours<Neighbours::kBefore>),
      HEDDLE_DRIVER(cuGraphNodeGetDependencies_v2, 12030, neighbours_with_edges<Neighbours::kBefore>),
      HEDDLE_DRIVER(cuGraphNodeGetDependentNodes, 10000, neighbours<Neighbours::kAfter>),
      HEDDLE_DRIVER(cuGraphNodeGetDependentNodes_v2, 12030, neighbours_with_edges<Neighbours::kAfter>),
      HEDDLE_DRIVER(cuGraphInstantiate, 10000, instantiate),
      HEDDLE_DRIVER(cuGraphInstantiate_v2, 11000, instantiate),
      HEDDLE_DRIVER(cuGraphInstantiateWithFlags, 11040, Same<&cudaGraphInstantiateWithFlags>::call),
      HEDDLE_DRIVER_PTSZ(cuGraphInstantiateWithParams, 12000, Same<&cudaGraphInstantiateWithParams>::call),
      HEDDLE_DRIVER_PTSZ(cuGraphLaunch, 10000, launch),
      HEDDLE_DRIVER_PTSZ(cuGraphUpload, 11010, upload),
      HEDDLE_DRIVER(cuGraphExecDestroy, 10000, SameAnywhere<&cudaGraphExecDestroy>::call),
      HEDDLE_DRIVER(cuGraphExecGetFlags, 12000, SameAnywhere<&cudaGraphExecGetFlags>::call),
      HEDDLE_DRIVER(cuGraphExecUpdate, 10020, update),
      HEDDLE_DRIVER(cuGraphExecUpdate_v2, 12000, Same<&cudaGraphExecUpdate>::call),
      HEDDLE_DRIVER(cuGraphConditionalHandleCreate, 12030, create_condition),
  };
  return rows;
}

}  // namespace heddle::client
