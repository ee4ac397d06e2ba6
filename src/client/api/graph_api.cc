// Graphs as a whole: making, copying, looking at them; user objects.

#include <cstdio>

#include "client/graph/node_lists.h"

namespace heddle::client {
namespace {

Answer<std::vector<GraphNode*>> nodes_of(cudaGraph_t handle, bool roots_only) {
  auto graph = resolve_graph(handle);
  if (!graph) return tl::unexpected(std::move(graph).error());
  std::vector<GraphNode*> found;
  for (const auto& node : (*graph)->nodes()) {
    if (!roots_only || node->dependencies.empty()) found.push_back(node.get());
  }
  return found;
}

const char* name_of(cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel:
      return "kernel";
    case cudaGraphNodeTypeMemcpy:
      return "memcpy";
    case cudaGraphNodeTypeMemset:
      return "memset";
    case cudaGraphNodeTypeHost:
      return "host";
    case cudaGraphNodeTypeGraph:
      return "graph";
    case cudaGraphNodeTypeEmpty:
      return "empty";
    case cudaGraphNodeTypeWaitEvent:
      return "event wait";
    case cudaGraphNodeTypeEventRecord:
      return "event record";
    case cudaGraphNodeTypeMemAlloc:
      return "memory allocation";
    case cudaGraphNodeTypeMemFree:
      return "memory free";
    case cudaGraphNodeTypeConditional:
      return "conditional";
    default:
      return "other";
  }
}

// What the node calls; "" for one that calls nothing.
const char* function_of(const Work& work) {
  if (const auto* kernel = std::get_if<KernelWork>(&work)) return kernel->function->name.c_str();
  if (const auto* called = std::get_if<LibraryWork>(&work)) return name_of(called->call());
  return "";
}

void write_inside(const GraphNode& node, const Graph& inside, size_t index, FILE* file);

void write_nodes(const Graph& graph, FILE* file) {
  std::unordered_map<const GraphNode*, size_t> index;
  for (const auto& node : graph.nodes()) index.emplace(node.get(), index.size());
  for (const auto& node : graph.nodes()) {
    const char* const function = function_of(node->work);
    std::fprintf(file, "  n%llu [label=\"%zu %s%s%s\"];\n", static_cast<unsigned long long>(node->id),
                 index.at(node.get()), name_of(type_of(node->work)), *function ? "\\n" : "", function);
    for (const GraphNode* before : node->dependencies)
      std::fprintf(file, "  n%llu -> n%llu;\n", static_cast<unsigned long long>(before->id),
                   static_cast<unsigned long long>(node->id));
    if (const auto* child = std::get_if<ChildWork>(&node->work)) write_inside(*node, *child->graph, 0, file);
    if (const auto* conditional = std::get_if<ConditionalWork>(&node->work)) {
      const auto& bodies = conditional->choice->bodies;
      for (size_t i = 0; i < bodies.size(); ++i) write_inside(*node, *bodies[i], i, file);
    }
  }
}

// A child graph, or one of those that a condition chooses from.
void write_inside(const GraphNode& node, const Graph& inside, size_t index, FILE* file) {
  std::fprintf(file, "  subgraph cluster_%llu_%zu {\n", static_cast<unsigned long long>(node.id), index);
  write_nodes(inside, file);
  std::fprintf(file, "  }\n");
}

Done print_dot(cudaGraph_t handle, const char* path) {
  auto graph = resolve_graph(handle);
  if (!graph) return tl::unexpected(std::move(graph).error());
  if (!path) return refuse(cudaErrorInvalidValue);
  FILE* const file = std::fopen(path, "we");
  if (!file) return refuse(cudaErrorOperatingSystem, stringf("cudaGraphDebugDotPrint: cannot write %s", path));
  std::fprintf(file, "digraph cuda_graph {\n");
  write_nodes(**graph, file);
  std::fprintf(file, "}\n");
  std::fclose(file);
  return {};
}

Done create_object(cudaUserObject_t* made, void* object, cudaHostFn_t destroy, unsigned count, unsigned flags) {
  if (!made || !destroy || count == 0 || flags != cudaUserObjectNoDestructorSync) return refuse(cudaErrorInvalidValue);
  *made = make_object({object, destroy, count});
  return {};
}

// With kMove the caller's references become the graph's.
Done retain_in_graph(cudaGraph_t handle, cudaUserObject_t object_handle, unsigned count, unsigned flags) {
  auto graph = resolve_graph(handle);
  if (!graph) return tl::unexpected(std::move(graph).error());
  auto object = resolve_object(object_handle);
  if (!object) return tl::unexpected(std::move(object).error());
  if (count == 0 || (flags & ~cudaGraphUserObjectMove)) return refuse(cudaErrorInvalidValue);
  if (!(flags & cudaGraphUserObjectMove)) retain(*object, count);
  (*graph)->references[*object] += count;
  return {};
}

Done release_in_graph(cudaGraph_t handle, cudaUserObject_t object_handle, unsigned count) {
  auto graph = resolve_graph(handle);
  if (!graph) return tl::unexpected(std::move(graph).error());
  auto object = resolve_object(object_handle);
  if (!object) return tl::unexpected(std::move(object).error());
  const auto held = (*graph)->references.find(*object);
  if (held == (*graph)->references.end() || held->second < count) return refuse(cudaErrorInvalidValue);
  held->second -= count;
  if (held->second == 0) (*graph)->references.erase(held);
  return release(*object, count);
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaGraphCreate(cudaGraph_t* made, unsigned flags) {
  return answer([&]() -> Done {
    if (!made || flags != 0) return refuse(cudaErrorInvalidValue);
    *made = handle_of(keep_graph(std::make_unique<Graph>()));
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  return answer([&]() -> Done {
    auto graph = resolve_graph(handle);
    return graph ? destroy_graph(*graph) : Done(tl::unexpected(std::move(graph).error()));
  });
}

HEDDLE_EXPORT cudaError_t cudaGraphClone(cudaGraph_t* made, cudaGraph_t original) {
  return answer([&]() -> Done {
    auto graph = resolve_graph(original);
    if (!graph) return tl::unexpected(std::move(graph).error());
    if (!made) return refuse(cudaErrorInvalidValue);
    if ((*graph)->has_memory_nodes())
      return refuse(cudaErrorNotSupported, "a CUDA graph that allocates or frees memory cannot be cloned");
    *made = handle_of(keep_graph((*graph)->clone()));
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t original,
                                                   cudaGraph_t clone) {
  return answer([&]() -> Done {
    auto node = resolve_node(original);
    if (!node) return tl::unexpected(std::move(node).error());
    auto graph = resolve_graph(clone);
    if (!graph) return tl::unexpected(std::move(graph).error());
    if (!found) return refuse(cudaErrorInvalidValue);
    for (const auto& candidate : (*graph)->nodes()) {
      if (candidate->origin != (*node)->id) continue;
      *found = handle_of(candidate.get());
      return {};
    }
    return refuse(cudaErrorInvalidValue);
  });
}

HEDDLE_EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return answer([&] { return list_nodes(nodes_of(graph, false), nodes, count); });
}

HEDDLE_EXPORT cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return answer([&] { return list_nodes(nodes_of(graph, true), nodes, count); });
}

HEDDLE_EXPORT cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
  return answer([&] { return print_dot(graph, path); });
}

HEDDLE_EXPORT cudaError_t cudaUserObjectCreate(cudaUserObject_t* made, void* object, cudaHostFn_t destroy,
                                               unsigned count, unsigned flags) {
  return answer([&] { return create_object(made, object, destroy, count, flags); });
}

HEDDLE_EXPORT cudaError_t cudaUserObjectRetain(cudaUserObject_t handle, unsigned count) {
  return answer([&]() -> Done {
    auto object = resolve_object(handle);
    if (!object) return tl::unexpected(std::move(object).error());
    retain(*object, count);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaUserObjectRelease(cudaUserObject_t handle, unsigned count) {
  return answer([&]() -> Done {
    auto object = resolve_object(handle);
    return object ? release(*object, count) : Done(tl::unexpected(std::move(object).error()));
  });
}

HEDDLE_EXPORT cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                                    unsigned flags) {
  return answer([&] { return retain_in_graph(graph, object, count, flags); });
}

HEDDLE_EXPORT cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  return answer([&] { return release_in_graph(graph, object, count); });
}

}  // namespace heddle::client
