#pragma once

#include "client/graph/capture.h"
#include "client/graph/node_lists.h"

// The calls behind edges_api.cc, in CUDA 13's form. `edges` may be null.
namespace heddle::client {

Done add_node(cudaGraphNode_t* made, cudaGraph_t graph, const cudaGraphNode_t* before, const cudaGraphEdgeData* edges,
              size_t count, cudaGraphNodeParams* p);  // node_api.cc
Done add_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
               const cudaGraphEdgeData* edges, size_t count);
Done remove_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                  const cudaGraphEdgeData* edges, size_t count);
Done list_edges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges, size_t* count);

enum class Neighbours { kBefore, kAfter };
Done list_neighbours(cudaGraphNode_t node, Neighbours which, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                     size_t* count);

Done update_capture(cudaStream_t stream, const cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges, size_t count,
                    unsigned flags);
// Null where the program does not ask.
struct CaptureAnswer {
  cudaStreamCaptureStatus* status;
  unsigned long long* id;
  cudaGraph_t* graph;
  const cudaGraphNode_t** nodes;
  const cudaGraphEdgeData** edges;
  size_t* count;
};
Done tell_capture(cudaStream_t stream, const CaptureAnswer& to);

}  // namespace heddle::client
