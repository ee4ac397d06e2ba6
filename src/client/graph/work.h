#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "client/copy/copy_plan.h"
#include "client/graph/condition.h"
#include "client/graph/graph_memory.h"
#include "client/graph/graph_types.h"
#include "client/stream/enqueue.h"
#include "client/stream/launch.h"
#include "library/call.h"

// What the nodes of graphs do, as data: parameters are copied when a node is made, and checked then.
namespace heddle::client {

class Graph;

struct EmptyWork {};
struct KernelWork {
  const void* key = nullptr;  // what the program names the kernel by
  Function* function = nullptr;
  VirtualDevice* device = nullptr;
  LaunchShape shape;
  std::vector<char> values;  // of the parameters, at their offsets

  // Pointers to the values, as a launch wants them; good while `values` lives.
  std::vector<void*> arguments();
};
// What a captured call of a library needs beside its words, for as long as a graph has it.
class LibraryKeeper {
 public:
  virtual ~LibraryKeeper() = default;
  // Before each launch: words that stand for a state that goes on are brought up to date.
  virtual void renew(std::span<uint64_t> words) = 0;
};
// A call of cuBLAS or cuRAND. To programs it is a kernel, as the ones are that NVIDIA's libraries launch.
struct LibraryWork {
  VirtualDevice* device = nullptr;
  library::Library library{};
  uint32_t function = 0;
  std::vector<uint64_t> words;
  std::shared_ptr<LibraryKeeper> keeper;

  library::Call call() const { return {library, function, words}; }
};
struct CopyWork {
  CopyPlan plan;
  cudaMemcpy3DParms parameters{};  // as cudaGraphMemcpyNodeGetParams tells them
};
struct FillWork {
  Fill fill;
  cudaMemsetParams parameters{};
};
struct HostWork {
  cudaHostFn_t function = nullptr;
  void* data = nullptr;
};
struct EventRecordWork {
  cudaEvent_t event = nullptr;
};
struct EventWaitWork {
  cudaEvent_t event = nullptr;
};
// Of a graph: owned by the node, shared with nobody but a node that takes its place.
struct ChildWork {
  std::shared_ptr<Graph> graph;
};
struct AllocWork {
  GraphAllocationPtr memory;
  cudaMemAllocNodeParams parameters{};  // as cudaGraphMemAllocNodeGetParams tells them
  std::vector<cudaMemAccessDesc> access;
};
struct FreeWork {
  GraphAllocationPtr memory;
};
// A condition (graph/condition.h) and the graphs of which it chooses; owned like a child, at addresses that the program
// was told.
struct Choice {
  std::shared_ptr<Condition> condition;
  cudaGraphConditionalNodeType type = cudaGraphCondTypeIf;
  std::vector<std::shared_ptr<Graph>> bodies;
  std::vector<cudaGraph_t> handles;  // of the bodies

  void add(std::shared_ptr<Graph> body) {
    handles.push_back(reinterpret_cast<cudaGraph_t>(body.get()));
    bodies.push_back(std::move(body));
  }
};
struct ConditionalWork {
  std::shared_ptr<Choice> choice;
};
using Work = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, EventRecordWork, EventWaitWork,
                          ChildWork, AllocWork, FreeWork, ConditionalWork, LibraryWork>;

cudaGraphNodeType type_of(const Work& work);
// The one device that it runs on; null: any.
VirtualDevice* device_of(const Work& work);

// From what calls in a capturing stream say.
Work kernel_work(const void* key, Function& function, VirtualDevice* device, const LaunchShape& shape,
                 void** arguments);
Answer<Work> copy_work(const CopyPlan& plan);
Work fill_work(const Fill& fill);
// From what the calls that make nodes say; on the current device.
Answer<Work> kernel_work(const cudaKernelNodeParams* p);
Answer<Work> copy_work(const cudaMemcpy3DParms* p);
Answer<Work> copy_work(Answer<CopyPlan> plan);
Answer<Work> fill_work(const cudaMemsetParams* p);
Answer<Work> host_work(const cudaHostNodeParams* p);

}  // namespace heddle::client
