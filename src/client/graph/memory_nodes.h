#pragma once

#include "client/graph/node_lists.h"

// Nodes that allocate and free memory; graph_memory.h says what becomes of it.
namespace heddle::client {

// An allocation behind those nodes of the graph. `parameters.dptr` becomes its address.
Answer<Work> alloc_work(Graph& graph, const std::vector<GraphNode*>& dependencies, cudaMemAllocNodeParams& parameters);
// cudaErrorInvalidValue for what no node allocates, and for a second free in one graph.
Answer<Work> free_work(const Graph& graph, uint64_t address);

Done add_allocation(const NewNode& at, cudaMemAllocNodeParams* p);
Done add_free(const NewNode& at, void* pointer);

}  // namespace heddle::client
