// Stream capture: beginning and ending it.

#include "client/api/submit.h"
#include "client/graph/node_lists.h"

namespace heddle::client {
namespace {

bool is_mode(cudaStreamCaptureMode mode) {
  return mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed;
}

Done begin(cudaStream_t stream, cudaStreamCaptureMode mode, Graph* graph, std::vector<GraphNode*> dependencies) {
  if (!is_mode(mode)) return refuse(cudaErrorInvalidValue);
  auto resolved = enter_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  HEDDLE_ANSWER(resolved->device->failure());
  return captures().begin(*resolved, mode, graph, std::move(dependencies));
}

Done begin_into(cudaStream_t stream, cudaGraph_t handle, const cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges,
                size_t count, cudaStreamCaptureMode mode) {
  auto graph = resolve_graph(handle);
  if (!graph) return tl::unexpected(std::move(graph).error());
  HEDDLE_ANSWER(check_edges(edges, count));
  auto dependencies = read_nodes(**graph, nodes, count);
  if (!dependencies) return tl::unexpected(std::move(dependencies).error());
  return begin(stream, mode, *graph, std::move(*dependencies));
}

Done end(cudaStream_t stream, cudaGraph_t* graph) {
  if (graph) *graph = nullptr;
  auto resolved = enter_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  auto captured = captures().end(*resolved, graph != nullptr);
  if (!captured) return tl::unexpected(std::move(captured).error());
  if (graph) *graph = handle_of(*captured);
  return {};
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return answer([&] { return begin(stream, mode, nullptr, {}); });
}

HEDDLE_EXPORT cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                                        const cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges,
                                                        size_t count, cudaStreamCaptureMode mode) {
  return answer([&] { return begin_into(stream, graph, nodes, edges, count, mode); });
}

HEDDLE_EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return answer([&] { return end(stream, graph); });
}

HEDDLE_EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return answer([&]() -> Done {
    if (!mode || !is_mode(*mode)) return refuse(cudaErrorInvalidValue);
    *mode = captures().exchange_mode(*mode);
    return {};
  });
}

}  // namespace heddle::client
