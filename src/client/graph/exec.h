#pragma once

#include "client/graph/graph.h"

// An instantiated graph: a flat list of work, each piece behind those it depends on, and the streams it runs in.
//
// A launch writes the same records as the single calls would. Work that depends on other work follows it in its stream
// where it can; branches go into streams of the graph's own, and wait for one another by sequence number. The first
// stream is the one that the graph is launched into: the launch begins there, and everything joins there again.
// Copies from and to pageable memory pass through pinned memory and calls into the program, so that a launch never
// waits, and so that they happen when it is their turn.
//
// What a conditional node chooses is a graph of its own, instantiated with this one. Only the host can choose, so a
// launch does wait there: it returns when its last condition is decided (exec_conditional.cc).
//
// Thread safety: any thread; launches of one graph follow one another, as CUDA has it.
namespace heddle::client {

class GraphExec {
 public:
  struct Refusal {
    cudaGraphInstantiateResult result = cudaGraphInstantiateError;
    GraphNode* node = nullptr;
    Failure failure;
  };
  static tl::expected<std::shared_ptr<GraphExec>, Refusal> instantiate(Graph& graph, unsigned long long flags);
  ~GraphExec();
  GraphExec(const GraphExec&) = delete;
  GraphExec& operator=(const GraphExec&) = delete;

  Done launch(const StreamRef& stream);

  // Of the node of that id, in the graph that was instantiated or in a child of it. cudaErrorInvalidValue for what is
  // none of this graph's, or does something else than before.
  Done set_work(const GraphNode& node, Work work);
  Done set_child(const GraphNode& node, const Graph& child);
  Done set_enabled(const GraphNode& node, bool enabled);
  Answer<bool> enabled(const GraphNode& node);
  // Takes over what the nodes of another graph of the same form do.
  Done update(const Graph& graph, cudaGraphExecUpdateResultInfo& info);

  // A graph that does the same. cudaErrorNotSupported for one with memory nodes.
  Answer<std::shared_ptr<Graph>> as_graph();

  unsigned long long flags() const { return flags_; }

 private:
  struct Step {
    uint64_t node = 0;           // id
    GraphNode* shown = nullptr;  // only to name it in answers
    Work work;
    std::vector<size_t> dependencies;  // smaller indexes
    size_t first_inside = 0;           // of a child graph: its steps are [first_inside, this one)
    bool is_child = false;
    bool enabled = true;
    size_t branch = 0;
    uint64_t staging = 0, staging_bytes = 0;         // pinned memory for a copy of pageable memory
    std::vector<std::shared_ptr<GraphExec>> bodies;  // of a conditional node
  };
  using Steps = std::vector<Step>;

  GraphExec() = default;
  // Waits for what is still running where something is kept for it.
  void close();
  // Appends the graph's steps behind `before`; those that nothing in it follows. nullopt: a cycle.
  static std::optional<std::vector<size_t>> flatten(const Graph& graph, const std::vector<size_t>& before,
                                                    Steps& steps);
  // The first step of `found` that differs from [first, ...) in form; `offset` is what stands before `first`.
  static std::optional<size_t> difference(const Steps& found, const Steps& steps, size_t first);
  void assign_branches();
  // What needs that device can be part of this graph. Null: it needs none.
  Done check_device(VirtualDevice* wanted);
  Done stage(Step& step, const Work& work);
  // The graphs that a conditional node chooses from.
  Done open_bodies(Step& step, const Work& work);
  Done replace(Step& step, Work work);
  Answer<Step*> step_of(const GraphNode& node);

  // What the launch allocates becomes live, if what an earlier one allocated is freed, or may be now.
  Done allocate(const StreamRef& stream);
  Done free(const StreamRef& stream);

  Done open_branches(const StreamRef& stream);
  Done charge_kernels(VirtualDevice& device);
  // What a launch is when its branches are open and its conditions set.
  Done launch_steps(const StreamRef& stream);
  // Waits for what is before the node, and launches what its condition says.
  Done decide(const StreamRef& branch, const Step& step);
  Done begin(const StreamRef& stream);
  Done run(const StreamRef& branch, Step& step);
  Done run_copy(const StreamRef& branch, const Step& step, const CopyWork& copy);
  Done join();
  uint64_t tail(size_t branch);

  std::mutex mutex_;
  unsigned long long flags_ = 0;
  Steps steps_;
  VirtualDevice* device_ = nullptr;  // null: nothing in it needs a device
  References references_;
  std::shared_ptr<void> only_one_;                      // of a graph with memory nodes; null: of another
  std::vector<std::shared_ptr<Condition>> conditions_;  // of its conditional nodes, inside others too, by address
  size_t branch_count_ = 1;
  std::vector<StreamRef> branches_;  // [0] changes with each launch
  std::vector<uint64_t> pinned_;     // everything that stage() took
  uint64_t end_ = 0;                 // last record of the last launch
};

Answer<std::shared_ptr<GraphExec>> resolve_exec(cudaGraphExec_t handle);
cudaGraphExec_t keep_exec(std::shared_ptr<GraphExec> exec);
Done destroy_exec(cudaGraphExec_t handle);

}  // namespace heddle::client
