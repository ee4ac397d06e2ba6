#include "client/graph/memory_nodes.h"

#include <algorithm>
#include <set>

namespace heddle::client {
namespace {

bool allocates(const Graph& graph, const GraphAllocationPtr& memory) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const auto& node) {
    const auto* work = std::get_if<AllocWork>(&node->work);
    return work && work->memory == memory;
  });
}

// What the graph has allocated and freed by the time that all of `nodes` are done.
std::vector<GraphAllocationPtr> freed_before(const Graph& graph, const std::vector<GraphNode*>& nodes) {
  std::vector<GraphAllocationPtr> freed;
  std::set<const GraphNode*> seen;
  std::vector<const GraphNode*> open(nodes.begin(), nodes.end());
  while (!open.empty()) {
    const GraphNode* const next = open.back();
    open.pop_back();
    if (!seen.insert(next).second) continue;
    const auto* work = std::get_if<FreeWork>(&next->work);
    if (work && allocates(graph, work->memory)) freed.push_back(work->memory);
    open.insert(open.end(), next->dependencies.begin(), next->dependencies.end());
  }
  return freed;
}

// A device reaches its own memory, and no other's.
Done check_access(const cudaMemAllocNodeParams& p) {
  if (p.accessDescCount > 0 && !p.accessDescs) return refuse(cudaErrorInvalidValue);
  for (size_t i = 0; i < p.accessDescCount; ++i) {
    const auto& [location, flags] = p.accessDescs[i];
    if (location.type != cudaMemLocationTypeDevice) return refuse(cudaErrorInvalidValue);
    if (location.id != p.poolProps.location.id && flags != cudaMemAccessFlagsProtNone)
      return refuse(cudaErrorNotSupported, "memory of a CUDA graph that another device reaches is not supported");
  }
  return {};
}

}  // namespace

Answer<Work> alloc_work(Graph& graph, const std::vector<GraphNode*>& dependencies, cudaMemAllocNodeParams& p) {
  const cudaMemPoolProps& pool = p.poolProps;
  if (p.bytesize == 0) return refuse(cudaErrorInvalidValue);
  if (pool.handleTypes != 0) return refuse(cudaErrorInvalidValue);
  if (pool.allocType != cudaMemAllocationTypePinned || pool.location.type != cudaMemLocationTypeDevice)
    return refuse(cudaErrorNotSupported,
                  "memory of a CUDA graph other than pinned memory of a device is not supported");
  HEDDLE_ANSWER(check_access(p));
  auto device = runtime().device(pool.location.id);
  if (!device) return tl::unexpected(std::move(device).error());
  auto memory = graph.addresses.place(**device, p.bytesize, freed_before(graph, dependencies));
  if (!memory) return tl::unexpected(std::move(memory).error());
  p.dptr = reinterpret_cast<void*>((*memory)->address);
  AllocWork work{std::move(*memory), p, {}};
  if (p.accessDescCount > 0) work.access.assign(p.accessDescs, p.accessDescs + p.accessDescCount);
  return work;
}

Answer<Work> free_work(const Graph& graph, uint64_t address) {
  auto memory = graph_memory().find(address);
  if (!memory)
    return refuse(cudaErrorInvalidValue, stringf("a node that frees 0x%llx: no node of a CUDA graph allocates that",
                                                 static_cast<unsigned long long>(address)));
  for (const auto& node : graph.nodes()) {
    const auto* work = std::get_if<FreeWork>(&node->work);
    if (work && work->memory == memory)
      return refuse(cudaErrorInvalidValue,
                    stringf("0x%llx is freed twice in a CUDA graph", static_cast<unsigned long long>(address)));
  }
  return FreeWork{std::move(memory)};
}

Done add_allocation(const NewNode& at, cudaMemAllocNodeParams* p) {
  if (!p) return refuse(cudaErrorInvalidValue);
  p->dptr = nullptr;
  return add_made(at, [&](Graph& graph, const std::vector<GraphNode*>& dependencies) {
    return alloc_work(graph, dependencies, *p);
  });
}

Done add_free(const NewNode& at, void* pointer) {
  return add_made(at, [&](Graph& graph, const std::vector<GraphNode*>&) {
    return free_work(graph, reinterpret_cast<uint64_t>(pointer));
  });
}

}  // namespace heddle::client
