// Instantiated graphs: making, launching, changing them.

#include "client/api/submit.h"
#include "client/graph/exec.h"

namespace heddle::client {
namespace {

constexpr unsigned long long kKnownFlags = cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |
                                           cudaGraphInstantiateFlagDeviceLaunch |
                                           cudaGraphInstantiateFlagUseNodePriority;

Done instantiate(cudaGraphExec_t* made, cudaGraph_t handle, cudaGraphInstantiateParams& p) {
  p.errNode_out = nullptr;
  p.result_out = cudaGraphInstantiateError;
  auto graph = resolve_graph(handle);
  if (!graph) return tl::unexpected(std::move(graph).error());
  if (!made || (p.flags & ~kKnownFlags)) return refuse(cudaErrorInvalidValue);
  if (p.flags & cudaGraphInstantiateFlagDeviceLaunch)
    return refuse(cudaErrorNotSupported, "launching CUDA graphs from the device is not supported");
  auto exec = GraphExec::instantiate(**graph, p.flags);
  if (!exec) {
    p.errNode_out = handle_of(exec.error().node);
    p.result_out = exec.error().result;
    return tl::unexpected(std::move(exec).error().failure);
  }
  p.result_out = cudaGraphInstantiateSuccess;
  *made = keep_exec(std::move(*exec));
  return {};
}

// In a stream that captures, the graph becomes part of the other one.
Done launch(cudaGraphExec_t handle, cudaStream_t stream) {
  auto exec = resolve_exec(handle);
  if (!exec) return tl::unexpected(std::move(exec).error());
  auto resolved = enter_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  const auto work = [&]() -> Answer<Work> {
    auto graph = (*exec)->as_graph();
    if (!graph) return tl::unexpected(std::move(graph).error());
    return ChildWork{std::move(*graph)};
  };
  return submit(*resolved, work, [&] { return (*exec)->launch(*resolved); });
}

template <class Body>
cudaError_t on_node(cudaGraphExec_t exec_handle, cudaGraphNode_t node_handle, Body&& body) {
  return answer([&]() -> Done {
    auto exec = resolve_exec(exec_handle);
    if (!exec) return tl::unexpected(std::move(exec).error());
    auto node = resolve_node(node_handle);
    if (!node) return tl::unexpected(std::move(node).error());
    return body(**exec, **node);
  });
}

Done update(cudaGraphExec_t exec_handle, cudaGraph_t graph_handle, cudaGraphExecUpdateResultInfo* info) {
  auto exec = resolve_exec(exec_handle);
  if (!exec) return tl::unexpected(std::move(exec).error());
  auto graph = resolve_graph(graph_handle);
  if (!graph) return tl::unexpected(std::move(graph).error());
  cudaGraphExecUpdateResultInfo own;
  return (*exec)->update(**graph, info ? *info : own);
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph,
                                                        unsigned long long flags) {
  return answer([&] {
    cudaGraphInstantiateParams p{flags, nullptr, nullptr, {}};
    return instantiate(made, graph, p);
  });
}

HEDDLE_EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(made, graph, flags);
}

HEDDLE_EXPORT cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* made, cudaGraph_t graph,
                                                         cudaGraphInstantiateParams* p) {
  return answer([&] { return p ? instantiate(made, graph, *p) : Done(refuse(cudaErrorInvalidValue)); });
}

HEDDLE_EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return answer([&] { return launch(exec, stream); });
}

// There is nothing to prepare on the device.
HEDDLE_EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream) {
  return answer([&]() -> Done {
    if (auto exec = resolve_exec(handle); !exec) return tl::unexpected(std::move(exec).error());
    auto resolved = enter_stream(stream);
    if (!resolved) return tl::unexpected(std::move(resolved).error());
    return captures().refuse_on(*resolved);
  });
}

HEDDLE_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return answer([&] { return destroy_exec(exec); });
}

HEDDLE_EXPORT cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t handle, unsigned long long* flags) {
  return answer([&]() -> Done {
    auto exec = resolve_exec(handle);
    if (!exec) return tl::unexpected(std::move(exec).error());
    if (!flags) return refuse(cudaErrorInvalidValue);
    *flags = (*exec)->flags();
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                              cudaGraphExecUpdateResultInfo* info) {
  return answer([&] { return update(exec, graph, info); });
}

HEDDLE_EXPORT cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                               cudaGraph_t child) {
  return on_node(exec, node, [&](GraphExec& changed, const GraphNode& at) -> Done {
    auto graph = resolve_graph(child);
    return graph ? changed.set_child(at, **graph) : Done(tl::unexpected(std::move(graph).error()));
  });
}

HEDDLE_EXPORT cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return on_node(exec, node,
                 [&](GraphExec& changed, const GraphNode& at) { return changed.set_enabled(at, enabled != 0); });
}

HEDDLE_EXPORT cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  return on_node(exec, node, [&](GraphExec& asked, const GraphNode& at) -> Done {
    auto found = asked.enabled(at);
    if (!found) return tl::unexpected(std::move(found).error());
    if (!enabled) return refuse(cudaErrorInvalidValue);
    *enabled = *found;
    return {};
  });
}

}  // namespace heddle::client
