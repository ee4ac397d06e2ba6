#include "client/graph/graph.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

namespace heddle::client {
namespace {

std::atomic<bool> g_any_made{false};

// Never destroyed: programs call CUDA from their own destructors.
struct Alive {
  std::mutex mutex;
  std::unordered_set<const void*> graphs, nodes;
  std::unordered_map<const void*, std::unique_ptr<Graph>> owned;
  std::unordered_map<const void*, std::unique_ptr<UserObject>> objects;
  uint64_t next_node = 1;
};
Alive& alive() {
  static auto* const all = new Alive;
  return *all;
}

std::shared_ptr<Choice> clone_of(const Choice& choice) {
  auto copy = std::make_shared<Choice>(Choice{choice.condition, choice.type, {}, {}});
  for (const auto& body : choice.bodies) copy->add(body->clone());
  return copy;
}

}  // namespace

Graph::Graph() {
  const std::lock_guard lock(alive().mutex);
  alive().graphs.insert(this);
  g_any_made.store(true, std::memory_order_release);
}

bool Graph::any_made() {
  return g_any_made.load(std::memory_order_acquire);
}

Graph::~Graph() {
  {
    const std::lock_guard lock(alive().mutex);
    alive().graphs.erase(this);
    for (const auto& node : nodes_) alive().nodes.erase(node.get());
  }
  release(references);
}

GraphNode* Graph::add(Work work, std::vector<GraphNode*> dependencies) {
  auto node = std::make_unique<GraphNode>();
  node->graph = this;
  node->work = std::move(work);
  node->dependencies = std::move(dependencies);
  const std::lock_guard lock(alive().mutex);
  node->id = alive().next_node++;
  alive().nodes.insert(node.get());
  return nodes_.emplace_back(std::move(node)).get();
}

void Graph::remove(GraphNode* node) {
  for (const auto& other : nodes_) std::erase(other->dependencies, node);
  {
    const std::lock_guard lock(alive().mutex);
    alive().nodes.erase(node);
  }
  std::erase_if(nodes_, [&](const auto& other) { return other.get() == node; });
}

bool Graph::connect(GraphNode* from, GraphNode* to) {
  if (std::find(to->dependencies.begin(), to->dependencies.end(), from) != to->dependencies.end()) return false;
  to->dependencies.push_back(from);
  return true;
}

bool Graph::disconnect(GraphNode* from, GraphNode* to) {
  return std::erase(to->dependencies, from) > 0;
}

std::vector<GraphNode*> Graph::dependents(const GraphNode* node) const {
  std::vector<GraphNode*> found;
  for (const auto& other : nodes_) {
    const auto& before = other->dependencies;
    if (std::find(before.begin(), before.end(), node) != before.end()) found.push_back(other.get());
  }
  return found;
}

std::optional<std::vector<GraphNode*>> Graph::sorted() const {
  std::unordered_map<const GraphNode*, size_t> index;
  for (size_t i = 0; i < nodes_.size(); ++i) index[nodes_[i].get()] = i;
  std::vector<size_t> missing(nodes_.size());
  std::vector<std::vector<size_t>> after(nodes_.size());
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    missing[i] = nodes_[i]->dependencies.size();
    for (const GraphNode* before : nodes_[i]->dependencies) after[index.at(before)].push_back(i);
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<GraphNode*> order;
  for (; !ready.empty();) {
    const size_t next = ready.top();
    ready.pop();
    order.push_back(nodes_[next].get());
    for (const size_t i : after[next]) {
      if (--missing[i] == 0) ready.push(i);
    }
  }
  return order.size() == nodes_.size() ? std::optional(order) : std::nullopt;
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (const auto& node : nodes_) {
    Work work = node->work;
    if (auto* embedded = std::get_if<ChildWork>(&work)) embedded->graph = embedded->graph->clone();
    if (auto* conditional = std::get_if<ConditionalWork>(&work)) conditional->choice = clone_of(*conditional->choice);
    GraphNode* const made = copy->add(std::move(work), {});
    made->origin = node->id;
    copies[node.get()] = made;
  }
  for (const auto& node : nodes_) {
    for (const GraphNode* before : node->dependencies) copies[node.get()]->dependencies.push_back(copies.at(before));
  }
  copy->conditions = conditions;
  copy->references = references;
  retain(references);
  return copy;
}

bool Graph::has_memory_nodes() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return std::holds_alternative<AllocWork>(node->work) || std::holds_alternative<FreeWork>(node->work);
  });
}

Answer<Graph*> resolve_graph(cudaGraph_t handle) {
  auto* const graph = reinterpret_cast<Graph*>(handle);
  const std::lock_guard lock(alive().mutex);
  if (!alive().graphs.contains(graph)) return refuse(cudaErrorInvalidValue);
  return graph;
}

Answer<GraphNode*> resolve_node(cudaGraphNode_t handle) {
  auto* const node = reinterpret_cast<GraphNode*>(handle);
  const std::lock_guard lock(alive().mutex);
  if (!alive().nodes.contains(node)) return refuse(cudaErrorInvalidValue);
  return node;
}

Answer<UserObject*> resolve_object(cudaUserObject_t handle) {
  auto* const object = reinterpret_cast<UserObject*>(handle);
  const std::lock_guard lock(alive().mutex);
  if (!alive().objects.contains(object)) return refuse(cudaErrorInvalidValue);
  return object;
}

Graph* keep_graph(std::unique_ptr<Graph> graph) {
  Graph* const kept = graph.get();
  const std::lock_guard lock(alive().mutex);
  alive().owned.emplace(kept, std::move(graph));
  return kept;
}

Done destroy_graph(Graph* graph) {
  std::unique_ptr<Graph> last;  // ends without the lock
  const std::lock_guard lock(alive().mutex);
  const auto found = alive().owned.find(graph);
  if (found == alive().owned.end()) return refuse(cudaErrorInvalidValue);
  last = std::move(found->second);
  alive().owned.erase(found);
  return {};
}

cudaUserObject_t make_object(UserObject object) {
  auto made = std::make_unique<UserObject>(object);
  UserObject* const kept = made.get();
  const std::lock_guard lock(alive().mutex);
  alive().objects.emplace(kept, std::move(made));
  return reinterpret_cast<cudaUserObject_t>(kept);
}

void retain(UserObject* object, uint64_t count) {
  const std::lock_guard lock(alive().mutex);
  object->references += count;
}

Done release(UserObject* object, uint64_t count) {
  std::unique_ptr<UserObject> last;
  {
    const std::lock_guard lock(alive().mutex);
    if (count > object->references) return refuse(cudaErrorInvalidValue);
    object->references -= count;
    if (object->references > 0) return {};
    last = std::move(alive().objects.at(object));
    alive().objects.erase(object);
  }
  last->destroy(last->object);
  return {};
}

void retain(const References& references) {
  for (const auto& [object, count] : references) retain(object, count);
}

void release(const References& references) {
  for (const auto& [object, count] : references) (void)release(object, count);  // they are the holder's own
}

}  // namespace heddle::client
