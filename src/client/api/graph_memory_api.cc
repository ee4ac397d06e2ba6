// Memory nodes of graphs, and the memory that they hold on a device.

#include "client/graph/memory_nodes.h"

namespace heddle::client {
namespace {

template <class Body>
cudaError_t on_device(int index, Body&& body) {
  return answer([&]() -> Done {
    auto device = runtime().device(index);
    return device ? body(**device) : Done(tl::unexpected(std::move(device).error()));
  });
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* made, cudaGraph_t graph,
                                                   const cudaGraphNode_t* before, size_t count,
                                                   cudaMemAllocNodeParams* p) {
  return answer([&] { return add_allocation({made, graph, before, count}, p); });
}

HEDDLE_EXPORT cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* made, cudaGraph_t graph,
                                                  const cudaGraphNode_t* before, size_t count, void* pointer) {
  return answer([&] { return add_free({made, graph, before, count}, pointer); });
}

HEDDLE_EXPORT cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* p) {
  return answer([&]() -> Done {
    auto work = work_of<AllocWork>(node);
    if (!work) return tl::unexpected(std::move(work).error());
    if (!p) return refuse(cudaErrorInvalidValue);
    *p = (*work)->parameters;
    p->accessDescs = (*work)->access.empty() ? nullptr : (*work)->access.data();
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* pointer) {
  return answer([&]() -> Done {
    auto work = work_of<FreeWork>(node);
    if (!work) return tl::unexpected(std::move(work).error());
    if (!pointer) return refuse(cudaErrorInvalidValue);
    *static_cast<void**>(pointer) = reinterpret_cast<void*>((*work)->memory->address);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaDeviceGraphMemTrim(int device) {
  return on_device(device, [](const VirtualDevice& trimmed) -> Done {
    graph_memory().trim(trimmed);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return on_device(device, [&](const VirtualDevice& asked) { return graph_memory().get(asked, attribute, value); });
}

HEDDLE_EXPORT cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return on_device(device, [&](const VirtualDevice& changed) { return graph_memory().set(changed, attribute, value); });
}

}  // namespace heddle::client
