#pragma once

#include "client/graph/graph.h"

// Lists of nodes that cross the API.
namespace heddle::client {

// The nodes of that graph that an array names, each once. cudaErrorInvalidValue for anything else.
Answer<std::vector<GraphNode*>> read_nodes(const Graph& graph, const cudaGraphNode_t* nodes, size_t count);
// As CUDA fills arrays: with null, `count` becomes what there is; otherwise `count` entries are written, null where
// there are no more, and `count` becomes what was written.
Done list_nodes(const Answer<std::vector<GraphNode*>>& found, cudaGraphNode_t* nodes, size_t* count);

// Edges that wait for less than the whole node before are refused by name.
Done check_edges(const cudaGraphEdgeData* edges, size_t count);

}  // namespace heddle::client
