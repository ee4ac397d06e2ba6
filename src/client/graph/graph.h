#pragma once

#include <map>
#include <mutex>
#include <unordered_map>

#include "client/graph/work.h"

// Graphs as programs build them: nodes and the order among them. Nothing here runs (exec.h).
//
// Thread safety: none of their own. CUDA leaves it to the program to serialise calls on one graph; what calls on
// different graphs share (which handles are alive) has a lock.
namespace heddle::client {

struct GraphNode {
  Graph* graph = nullptr;
  uint64_t id = 0;      // unlike an address never used again: instantiated graphs remember it
  uint64_t origin = 0;  // of the node that it is a clone of; 0: none
  Work work;
  std::vector<GraphNode*> dependencies;  // in the order in which they were stated
  std::vector<void*> shown_arguments;    // what cudaGraphKernelNodeGetParams points to
};

// An object of the program that graphs keep alive, by count.
struct UserObject {
  void* object = nullptr;
  cudaHostFn_t destroy = nullptr;
  uint64_t references = 0;
};
using References = std::map<UserObject*, uint64_t>;

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  GraphNode* add(Work work, std::vector<GraphNode*> dependencies);
  void remove(GraphNode* node);
  // False where the edge is there already, or the other way round not there.
  static bool connect(GraphNode* from, GraphNode* to);
  static bool disconnect(GraphNode* from, GraphNode* to);

  // In the order in which they were made, as CUDA lists them.
  const std::vector<std::unique_ptr<GraphNode>>& nodes() const { return nodes_; }
  std::vector<GraphNode*> dependents(const GraphNode* node) const;
  // Every node behind those it depends on, otherwise in the order in which they were made; nullopt: there is a cycle.
  std::optional<std::vector<GraphNode*>> sorted() const;
  // A copy of everything, child graphs too. Not of one that allocates or frees: an address is one graph's.
  std::unique_ptr<Graph> clone() const;
  bool has_memory_nodes() const;

  // Whether the process ever made one.
  static bool any_made();

  References references;
  GraphAddresses addresses;
  std::vector<std::shared_ptr<Condition>> conditions;  // whose handles were made for it, and for what it is a clone of
  std::weak_ptr<void> instantiated;  // lives as long as the one that there may be of a graph with memory nodes

 private:
  std::vector<std::unique_ptr<GraphNode>> nodes_;
};

// Which handles are alive; a stale or made-up one is recognised without touching memory.
Answer<Graph*> resolve_graph(cudaGraph_t handle);
Answer<GraphNode*> resolve_node(cudaGraphNode_t handle);
Answer<UserObject*> resolve_object(cudaUserObject_t handle);
inline cudaGraph_t handle_of(Graph* graph) {
  return reinterpret_cast<cudaGraph_t>(graph);
}
inline cudaGraphNode_t handle_of(GraphNode* node) {
  return reinterpret_cast<cudaGraphNode_t>(node);
}

// The program's own graphs live here, until it destroys them.
Graph* keep_graph(std::unique_ptr<Graph> graph);
Done destroy_graph(Graph* graph);

cudaUserObject_t make_object(UserObject object);
void retain(UserObject* object, uint64_t count);
// Calls the program's destructor after the last reference, without any lock.
Done release(UserObject* object, uint64_t count);
void retain(const References& references);
void release(const References& references);

}  // namespace heddle::client
