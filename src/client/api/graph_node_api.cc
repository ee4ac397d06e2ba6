// The nodes of graphs: making them, what they do, and changing that.

#include "client/api/graph_edges.h"
#include "client/graph/conditional_nodes.h"
#include "client/graph/exec.h"
#include "client/graph/memory_nodes.h"
#include "client/stream/events.h"

namespace heddle::client {
namespace {

Done add(const NewNode& at, Answer<Work> work) {
  return add_made(at, [&](Graph&, const std::vector<GraphNode*>&) { return std::move(work); });
}

// What a node does from now on: the same kind of thing as before.
Done change(cudaGraphNode_t handle, Answer<Work> work) {
  auto node = resolve_node(handle);
  if (!node) return tl::unexpected(std::move(node).error());
  if (!work) return tl::unexpected(std::move(work).error());
  if (type_of((*node)->work) != type_of(*work)) return refuse(cudaErrorInvalidValue);
  if (const auto* before = std::get_if<KernelWork>(&(*node)->work))
    std::get<KernelWork>(*work).shape.cooperative = before->shape.cooperative;
  (*node)->work = std::move(*work);
  return {};
}

Done change(cudaGraphExec_t exec_handle, cudaGraphNode_t handle, Answer<Work> work) {
  auto exec = resolve_exec(exec_handle);
  if (!exec) return tl::unexpected(std::move(exec).error());
  auto node = resolve_node(handle);
  if (!node) return tl::unexpected(std::move(node).error());
  if (!work) return tl::unexpected(std::move(work).error());
  return (*exec)->set_work(**node, std::move(*work));
}

Answer<Work> symbol_work(const void* symbol, const void* other, size_t bytes, size_t offset, cudaMemcpyKind kind,
                         SymbolEnd end) {
  auto device = runtime().current_device();
  if (!device) return tl::unexpected(std::move(device).error());
  return copy_work(plan_symbol(symbol, other, bytes, offset, kind, end, *device));
}

template <class W>
Answer<Work> event_work(cudaEvent_t event) {
  if (auto found = resolve_event(event); !found) return tl::unexpected(std::move(found).error());
  return W{event};
}

Answer<Work> child_work(cudaGraph_t handle) {
  auto graph = resolve_graph(handle);
  if (!graph) return tl::unexpected(std::move(graph).error());
  if ((*graph)->has_memory_nodes())
    return refuse(cudaErrorNotSupported, "a CUDA graph that allocates or frees memory cannot be the child of another");
  return ChildWork{(*graph)->clone()};
}

Answer<Work> any_work(const cudaGraphNodeParams* p) {
  if (!p) return refuse(cudaErrorInvalidValue);
  switch (p->type) {
    case cudaGraphNodeTypeKernel:
      return kernel_work(&p->kernel);
    case cudaGraphNodeTypeMemcpy:
      return copy_work(&p->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
      return fill_work(&p->memset);
    case cudaGraphNodeTypeHost:
      return host_work(&p->host);
    case cudaGraphNodeTypeGraph:
      if (p->graph.ownership != 0)
        return refuse(cudaErrorNotSupported, "a child graph that is moved into its parent is not supported");
      return child_work(p->graph.graph);
    case cudaGraphNodeTypeEmpty:
      return EmptyWork{};
    case cudaGraphNodeTypeWaitEvent:
      return event_work<EventWaitWork>(p->event);
    case cudaGraphNodeTypeEventRecord:
      return event_work<EventRecordWork>(p->event);
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree:
      return refuse(cudaErrorInvalidValue, "what a memory node of a CUDA graph allocates or frees cannot be changed");
    case cudaGraphNodeTypeConditional:
      return refuse(cudaErrorInvalidValue, "what a conditional node of a CUDA graph decides by cannot be changed");
    default:
      return refuse(cudaErrorNotSupported,
                    stringf("nodes of type %d in CUDA graphs are not supported", static_cast<int>(p->type)));
  }
}

Done tell_kernel(cudaGraphNode_t handle, cudaKernelNodeParams* p) {
  auto node = resolve_node(handle);
  if (!node) return tl::unexpected(std::move(node).error());
  auto* const work = std::get_if<KernelWork>(&(*node)->work);
  // As NVIDIA's runtime answers for a kernel that another library has launched: the program knows no such function.
  if (std::holds_alternative<LibraryWork>((*node)->work)) return refuse(cudaErrorInvalidDeviceFunction);
  if (!work || !p) return refuse(cudaErrorInvalidValue);
  (*node)->shown_arguments = work->arguments();
  const LaunchShape& shape = work->shape;
  *p = {const_cast<void*>(work->key),    shape.grid, shape.block, static_cast<unsigned>(shape.shared_bytes),
        (*node)->shown_arguments.data(), nullptr};
  return {};
}

template <class W, class Parameters>
Done tell(cudaGraphNode_t handle, Parameters* to) {
  auto work = work_of<W>(handle);
  if (!work) return tl::unexpected(std::move(work).error());
  if (!to) return refuse(cudaErrorInvalidValue);
  *to = (*work)->parameters;
  return {};
}

template <class W>
Done tell_event(cudaGraphNode_t handle, cudaEvent_t* to) {
  auto work = work_of<W>(handle);
  if (!work) return tl::unexpected(std::move(work).error());
  if (!to) return refuse(cudaErrorInvalidValue);
  *to = (*work)->event;
  return {};
}

Done set_attribute(cudaGraphNode_t handle, cudaLaunchAttributeID id, const cudaLaunchAttributeValue* value) {
  auto work = work_of<KernelWork>(handle);
  if (!work) return tl::unexpected(std::move(work).error());
  if (!value) return refuse(cudaErrorInvalidValue);
  return apply_attribute({id, {}, *value}, (*work)->shape);
}

Done get_attribute(cudaGraphNode_t handle, cudaLaunchAttributeID id, cudaLaunchAttributeValue* value) {
  auto work = work_of<KernelWork>(handle);
  if (!work) return tl::unexpected(std::move(work).error());
  if (!value) return refuse(cudaErrorInvalidValue);
  *value = {};
  if (id == cudaLaunchAttributeCooperative) value->cooperative = (*work)->shape.cooperative;
  return {};
}

Done copy_attributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  auto target = work_of<KernelWork>(to), source = work_of<KernelWork>(from);
  if (!target) return tl::unexpected(std::move(target).error());
  if (!source) return tl::unexpected(std::move(source).error());
  (*target)->shape.cooperative = (*source)->shape.cooperative;
  return {};
}

Done destroy(cudaGraphNode_t handle) {
  auto node = resolve_node(handle);
  if (!node) return tl::unexpected(std::move(node).error());
  HEDDLE_ANSWER(check_removal(*(*node)->graph));
  (*node)->graph->remove(*node);
  return {};
}

}  // namespace

using Kind = cudaMemcpyKind;

// --- kernels ---
HEDDLE_EXPORT cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* made, cudaGraph_t graph,
                                                 const cudaGraphNode_t* before, size_t count,
                                                 const cudaKernelNodeParams* p) {
  return answer([&] { return add({made, graph, before, count}, kernel_work(p)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* p) {
  return answer([&] { return tell_kernel(node, p); });
}
HEDDLE_EXPORT cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* p) {
  return answer([&] { return change(node, kernel_work(p)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                           const cudaKernelNodeParams* p) {
  return answer([&] { return change(exec, node, kernel_work(p)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                                          const cudaLaunchAttributeValue* value) {
  return answer([&] { return set_attribute(node, id, value); });
}
HEDDLE_EXPORT cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                                          cudaLaunchAttributeValue* value) {
  return answer([&] { return get_attribute(node, id, value); });
}
HEDDLE_EXPORT cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  return answer([&] { return copy_attributes(to, from); });
}

// --- copies ---
HEDDLE_EXPORT cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* made, cudaGraph_t graph,
                                                 const cudaGraphNode_t* before, size_t count,
                                                 const cudaMemcpy3DParms* p) {
  return answer([&] { return add({made, graph, before, count}, copy_work(p)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* made, cudaGraph_t graph,
                                                   const cudaGraphNode_t* before, size_t count, void* to,
                                                   const void* from, size_t bytes, Kind kind) {
  return answer([&] { return add({made, graph, before, count}, copy_work(plan_linear(to, from, bytes, kind))); });
}
HEDDLE_EXPORT cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* made, cudaGraph_t graph,
                                                         const cudaGraphNode_t* before, size_t count,
                                                         const void* symbol, const void* from, size_t bytes,
                                                         size_t offset, Kind kind) {
  return answer([&] {
    return add({made, graph, before, count}, symbol_work(symbol, from, bytes, offset, kind, SymbolEnd::kTo));
  });
}
HEDDLE_EXPORT cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* made, cudaGraph_t graph,
                                                           const cudaGraphNode_t* before, size_t count, void* to,
                                                           const void* symbol, size_t bytes, size_t offset, Kind kind) {
  return answer([&] {
    return add({made, graph, before, count}, symbol_work(symbol, to, bytes, offset, kind, SymbolEnd::kFrom));
  });
}
HEDDLE_EXPORT cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* p) {
  return answer([&] { return tell<CopyWork>(node, p); });
}
HEDDLE_EXPORT cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* p) {
  return answer([&] { return change(node, copy_work(p)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t bytes,
                                                         Kind kind) {
  return answer([&] { return change(node, copy_work(plan_linear(to, from, bytes, kind))); });
}
HEDDLE_EXPORT cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol,
                                                               const void* from, size_t bytes, size_t offset,
                                                               Kind kind) {
  return answer([&] { return change(node, symbol_work(symbol, from, bytes, offset, kind, SymbolEnd::kTo)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to, const void* symbol,
                                                                 size_t bytes, size_t offset, Kind kind) {
  return answer([&] { return change(node, symbol_work(symbol, to, bytes, offset, kind, SymbolEnd::kFrom)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                           const cudaMemcpy3DParms* p) {
  return answer([&] { return change(exec, node, copy_work(p)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                                             const void* from, size_t bytes, Kind kind) {
  return answer([&] { return change(exec, node, copy_work(plan_linear(to, from, bytes, kind))); });
}
HEDDLE_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                                   const void* symbol, const void* from, size_t bytes,
                                                                   size_t offset, Kind kind) {
  return answer([&] { return change(exec, node, symbol_work(symbol, from, bytes, offset, kind, SymbolEnd::kTo)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                                     void* to, const void* symbol, size_t bytes,
                                                                     size_t offset, Kind kind) {
  return answer([&] { return change(exec, node, symbol_work(symbol, to, bytes, offset, kind, SymbolEnd::kFrom)); });
}

// --- fills ---
HEDDLE_EXPORT cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* made, cudaGraph_t graph,
                                                 const cudaGraphNode_t* before, size_t count,
                                                 const cudaMemsetParams* p) {
  return answer([&] { return add({made, graph, before, count}, fill_work(p)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* p) {
  return answer([&] { return tell<FillWork>(node, p); });
}
HEDDLE_EXPORT cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* p) {
  return answer([&] { return change(node, fill_work(p)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                           const cudaMemsetParams* p) {
  return answer([&] { return change(exec, node, fill_work(p)); });
}

// --- calls into the program ---
HEDDLE_EXPORT cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* made, cudaGraph_t graph, const cudaGraphNode_t* before,
                                               size_t count, const cudaHostNodeParams* p) {
  return answer([&] { return add({made, graph, before, count}, host_work(p)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* p) {
  return answer([&]() -> Done {
    auto work = work_of<HostWork>(node);
    if (!work) return tl::unexpected(std::move(work).error());
    if (!p) return refuse(cudaErrorInvalidValue);
    *p = {(*work)->function, (*work)->data};
    return {};
  });
}
HEDDLE_EXPORT cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* p) {
  return answer([&] { return change(node, host_work(p)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                         const cudaHostNodeParams* p) {
  return answer([&] { return change(exec, node, host_work(p)); });
}

// --- events ---
HEDDLE_EXPORT cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* made, cudaGraph_t graph,
                                                      const cudaGraphNode_t* before, size_t count, cudaEvent_t event) {
  return answer([&] { return add({made, graph, before, count}, event_work<EventRecordWork>(event)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return answer([&] { return tell_event<EventRecordWork>(node, event); });
}
HEDDLE_EXPORT cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return answer([&] { return change(node, event_work<EventRecordWork>(event)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                               cudaEvent_t event) {
  return answer([&] { return change(exec, node, event_work<EventRecordWork>(event)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* made, cudaGraph_t graph,
                                                    const cudaGraphNode_t* before, size_t count, cudaEvent_t event) {
  return answer([&] { return add({made, graph, before, count}, event_work<EventWaitWork>(event)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return answer([&] { return tell_event<EventWaitWork>(node, event); });
}
HEDDLE_EXPORT cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return answer([&] { return change(node, event_work<EventWaitWork>(event)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                             cudaEvent_t event) {
  return answer([&] { return change(exec, node, event_work<EventWaitWork>(event)); });
}

// --- graphs, nothing, anything ---
HEDDLE_EXPORT cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* made, cudaGraph_t graph,
                                                     const cudaGraphNode_t* before, size_t count, cudaGraph_t child) {
  return answer([&] { return add({made, graph, before, count}, child_work(child)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* child) {
  return answer([&]() -> Done {
    auto work = work_of<ChildWork>(node);
    if (!work) return tl::unexpected(std::move(work).error());
    if (!child) return refuse(cudaErrorInvalidValue);
    *child = handle_of((*work)->graph.get());
    return {};
  });
}
HEDDLE_EXPORT cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* made, cudaGraph_t graph, const cudaGraphNode_t* before,
                                                size_t count) {
  return answer([&] { return add({made, graph, before, count}, EmptyWork{}); });
}
// cudaGraphAddNode of CUDA 13, under a name that both libraries' own can call.
Done add_node(cudaGraphNode_t* made, cudaGraph_t graph, const cudaGraphNode_t* before, const cudaGraphEdgeData* edges,
              size_t count, cudaGraphNodeParams* p) {
  HEDDLE_ANSWER(check_edges(edges, count));
  const NewNode at{made, graph, before, count};
  if (p && p->type == cudaGraphNodeTypeMemAlloc) return add_allocation(at, &p->alloc);
  if (p && p->type == cudaGraphNodeTypeMemFree) return add_free(at, p->free.dptr);
  if (p && p->type == cudaGraphNodeTypeConditional) return add_choice(at, p->conditional);
  return add(at, any_work(p));
}
HEDDLE_EXPORT cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* made, cudaGraph_t handle,
                                                           unsigned value, unsigned flags) {
  return answer([&]() -> Done {
    auto graph = resolve_graph(handle);
    if (!graph) return tl::unexpected(std::move(graph).error());
    if (!made || (flags & ~cudaGraphCondAssignDefault)) return refuse(cudaErrorInvalidValue);
    auto condition = Condition::make(value, (flags & cudaGraphCondAssignDefault) != 0);
    if (!condition) return tl::unexpected(std::move(condition).error());
    *made = (*condition)->handle();
    (*graph)->conditions.push_back(std::move(*condition));
    return {};
  });
}
HEDDLE_EXPORT cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, const cudaGraphNodeParams* p) {
  return answer([&] { return change(node, any_work(p)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const cudaGraphNodeParams* p) {
  return answer([&] { return change(exec, node, any_work(p)); });
}
HEDDLE_EXPORT cudaError_t cudaGraphNodeGetType(cudaGraphNode_t handle, cudaGraphNodeType* type) {
  return answer([&]() -> Done {
    auto node = resolve_node(handle);
    if (!node) return tl::unexpected(std::move(node).error());
    if (!type) return refuse(cudaErrorInvalidValue);
    *type = type_of((*node)->work);
    return {};
  });
}
HEDDLE_EXPORT cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return answer([&] { return destroy(node); });
}

}  // namespace heddle::client
