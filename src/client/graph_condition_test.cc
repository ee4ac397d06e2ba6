// Graphs with conditional nodes, against a heddled and workers in threads of this process. The kernel of the tests
// writes a number: at a condition's handle it sets the condition, as cudaGraphSetConditional does.

#include <thread>

#include "client/testing/cuda_graph_api.h"
#include "client/testing/session_test.h"

// The kernel's writes and the host's reads meet by way of the ring, which client and worker map at two places:
// ThreadSanitizer cannot follow that.
// NOLINTBEGIN: the name is the sanitizer's.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:heddle::client::testing::FakeHeddled::execute\n";
}
// NOLINTEND

namespace heddle::client {
namespace {

using testing::let_kernels_add;
using testing::program;

const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new testing::Environment({.devices = 2, .budget = 64 * kMiB}));

class GraphConditionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory_), 8 * sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaMemset(memory_, 0, 8 * sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
    ASSERT_EQ(cudaGraphCreate(&graph_, 0), cudaSuccess);
    let_kernels_add();
  }
  void TearDown() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
    cudaGetLastError();
  }

  using Handle = cudaGraphConditionalHandle;
  using Bodies = std::vector<cudaGraph_t>;

  Handle condition(unsigned value, unsigned flags = cudaGraphCondAssignDefault) {
    Handle handle = 0;
    EXPECT_EQ(cudaGraphConditionalHandleCreate(&handle, graph_, value, flags), cudaSuccess);
    return handle;
  }
  // *to = memory_[from] + number, behind `before` where that is a node.
  cudaGraphNode_t add_kernel(cudaGraph_t graph, int* to, int number, int from, cudaGraphNode_t before = nullptr) {
    int* source = memory_ + from;
    void* arguments[] = {&to, &number, &source};
    const cudaKernelNodeParams parameters{&program().add, {1, 1, 1}, {32, 1, 1}, 0, arguments, nullptr};
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaGraphAddKernelNode(&node, graph, &before, before ? 1 : 0, &parameters), cudaSuccess);
    return node;
  }
  cudaGraphNode_t add_kernel(cudaGraph_t graph, int to, int number, int from, cudaGraphNode_t before = nullptr) {
    return add_kernel(graph, memory_ + to, number, from, before);
  }
  cudaGraphNode_t set(cudaGraph_t graph, Handle handle, int number, int from, cudaGraphNode_t before = nullptr) {
    return add_kernel(graph, reinterpret_cast<int*>(handle), number, from, before);
  }
  static cudaError_t try_node(cudaGraph_t graph, Handle handle, cudaGraphConditionalNodeType type, unsigned size,
                              cudaGraphNode_t before, Bodies* bodies = nullptr, cudaGraphNode_t* made = nullptr) {
    cudaGraphNodeParams p{};
    p.type = cudaGraphNodeTypeConditional;
    p.conditional = {handle, type, size, nullptr};
    cudaGraphNode_t node = nullptr;
    const cudaError_t added = cudaGraphAddNode(&node, graph, &before, nullptr, before ? 1 : 0, &p);
    if (added == cudaSuccess && bodies) bodies->assign(p.conditional.phGraph_out, p.conditional.phGraph_out + size);
    if (made) *made = node;
    return added;
  }
  static Bodies add_node(cudaGraph_t graph, Handle handle, cudaGraphConditionalNodeType type, unsigned size,
                         cudaGraphNode_t before = nullptr, cudaGraphNode_t* made = nullptr) {
    Bodies bodies;
    EXPECT_EQ(try_node(graph, handle, type, size, before, &bodies, made), cudaSuccess);
    bodies.resize(size);
    return bodies;
  }
  cudaGraphExec_t instantiate(cudaGraph_t graph) {
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    return exec;
  }
  void launch(cudaGraphExec_t exec) {
    EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
  void run(cudaGraph_t graph) {
    cudaGraphExec_t exec = instantiate(graph);
    launch(exec);
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  }
  void give(int index, int value) {
    EXPECT_EQ(cudaMemcpy(memory_ + index, &value, sizeof value, cudaMemcpyHostToDevice), cudaSuccess);
  }
  int value(int index) {
    int read = -1;
    EXPECT_EQ(cudaMemcpy(&read, memory_ + index, sizeof read, cudaMemcpyDeviceToHost), cudaSuccess);
    return read;
  }

  int* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
};

TEST_F(GraphConditionTest, IfChoosesByWhatAKernelHasSet) {
  const Handle handle = condition(0);
  const cudaGraphNode_t decides = set(graph_, handle, 0, 0);
  cudaGraphNode_t choice;
  const Bodies bodies = add_node(graph_, handle, cudaGraphCondTypeIf, 2, decides, &choice);
  add_kernel(bodies[0], 1, 10, 1);
  add_kernel(bodies[1], 2, 1, 2);
  add_kernel(graph_, 3, 100, 1, choice);  // behind the body
  cudaGraphExec_t exec = instantiate(graph_);
  give(0, 7);
  launch(exec);
  EXPECT_EQ(value(1), 10);
  EXPECT_EQ(value(2), 0);
  EXPECT_EQ(value(3), 110);
  give(0, 0);
  launch(exec);
  EXPECT_EQ(value(1), 10);
  EXPECT_EQ(value(2), 1);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphConditionTest, WhileRepeatsItsBodyAndBeginsAnewAtEachLaunch) {
  const Handle handle = condition(1);
  const cudaGraph_t body = add_node(graph_, handle, cudaGraphCondTypeWhile, 1).front();
  const cudaGraphNode_t counts = add_kernel(body, 0, -1, 0);
  add_kernel(body, 1, 1, 1);
  set(body, handle, 0, 0, counts);
  cudaGraphExec_t exec = instantiate(graph_);
  for (const int rounds : {5, 3}) {
    give(0, rounds);
    give(1, 0);
    launch(exec);
    EXPECT_EQ(value(0), 0);
    EXPECT_EQ(value(1), rounds);
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

// Nothing says that the one comes before the other, but the order in which they were made.
TEST_F(GraphConditionTest, WhatIsMadeBeforeItIsDoneWithoutAnEdge) {
  const Handle handle = condition(0);
  set(graph_, handle, 1, 0);
  const cudaGraph_t body = add_node(graph_, handle, cudaGraphCondTypeIf, 1).front();
  add_kernel(body, 1, 1, 1);
  cudaGraphExec_t exec = instantiate(graph_);
  for (int i = 0; i < 50; ++i) launch(exec);
  EXPECT_EQ(value(1), 50);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphConditionTest, SwitchChoosesByIndexOrNothing) {
  const Handle handle = condition(0);
  const cudaGraphNode_t decides = set(graph_, handle, 0, 0);
  const Bodies bodies = add_node(graph_, handle, cudaGraphCondTypeSwitch, 3, decides);
  for (int i = 0; i < 3; ++i) add_kernel(bodies[static_cast<size_t>(i)], 1, 10 * (i + 1), 7);
  cudaGraphExec_t exec = instantiate(graph_);
  const int expected[] = {10, 20, 30, -1, -1};
  for (const int index : {0, 1, 2, 3, -1}) {
    give(0, index);
    give(1, -1);
    launch(exec);
    EXPECT_EQ(value(1), expected[index < 0 ? 4 : index]) << index;
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphConditionTest, ConditionsStandInsideOthers) {
  const Handle rounds = condition(1), even = condition(0);
  const cudaGraph_t body = add_node(graph_, rounds, cudaGraphCondTypeWhile, 1).front();
  const cudaGraphNode_t counts = add_kernel(body, 0, -1, 0);
  const cudaGraphNode_t looks = set(body, even, -2, 0, counts);  // 0 in the round that leaves 2
  const cudaGraph_t inner = add_node(body, even, cudaGraphCondTypeIf, 1, looks).front();
  add_kernel(inner, 1, 1, 1);
  set(body, rounds, 0, 0, counts);
  give(0, 5);
  run(graph_);
  EXPECT_EQ(value(1), 4);
}

TEST_F(GraphConditionTest, WithoutTheFlagAConditionStaysAsItWasLeft) {
  const Handle handle = condition(1, 0);
  const cudaGraph_t body = add_node(graph_, handle, cudaGraphCondTypeIf, 1).front();
  add_kernel(body, 1, 1, 1);
  set(body, handle, 0, 7);  // memory_[7] is 0: never again
  cudaGraphExec_t exec = instantiate(graph_);
  launch(exec);
  launch(exec);
  EXPECT_EQ(value(1), 1);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

// Each body counts for itself, and what the original becomes afterwards is not the clone's.
TEST_F(GraphConditionTest, ClonesHaveBodiesOfTheirOwn) {
  const Handle handle = condition(1);
  const cudaGraph_t body = add_node(graph_, handle, cudaGraphCondTypeIf, 1).front();
  add_kernel(body, 1, 1, 1);
  cudaGraph_t clone;
  ASSERT_EQ(cudaGraphClone(&clone, graph_), cudaSuccess);
  add_kernel(body, 2, 1, 2);
  run(clone);
  EXPECT_EQ(value(1), 1);
  EXPECT_EQ(value(2), 0);
  run(graph_);
  EXPECT_EQ(value(2), 1);
  EXPECT_EQ(cudaGraphDestroy(clone), cudaSuccess);
}

TEST_F(GraphConditionTest, AnInstantiatedGraphTakesOverOtherBodies) {
  const Handle handle = condition(1);
  const cudaGraph_t body = add_node(graph_, handle, cudaGraphCondTypeIf, 1).front();
  const cudaGraphNode_t adds = add_kernel(body, 1, 1, 1);
  cudaGraphExec_t exec = instantiate(graph_);
  ASSERT_EQ(cudaGraphDestroyNode(adds), cudaSuccess);
  add_kernel(body, 1, 100, 1);
  launch(exec);
  EXPECT_EQ(value(1), 1);
  cudaGraphExecUpdateResultInfo info;
  ASSERT_EQ(cudaGraphExecUpdate(exec, graph_, &info), cudaSuccess);
  launch(exec);
  EXPECT_EQ(value(1), 101);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

// Two threads count by one condition; their launches take turns, so that none sees what the other has set.
TEST_F(GraphConditionTest, LaunchesThatShareAConditionTakeTurns) {
  const Handle handle = condition(1);
  const cudaGraphNode_t begins = add_kernel(graph_, 0, 3, 7);  // memory_[7] is 0
  const cudaGraph_t body = add_node(graph_, handle, cudaGraphCondTypeWhile, 1, begins).front();
  const cudaGraphNode_t counts = add_kernel(body, 0, -1, 0);
  add_kernel(body, 2, 1, 2, counts);
  set(body, handle, 0, 0, counts);
  constexpr int kLaunches = 20;
  const auto launches = [&] {
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    cudaGraphExec_t exec = instantiate(graph_);
    for (int i = 0; i < kLaunches; ++i) EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  };
  std::thread other(launches);
  launches();
  other.join();
  EXPECT_EQ(value(2), 2 * 3 * kLaunches);
}

TEST_F(GraphConditionTest, WhatIsNoConditionIsRefused) {
  const Handle handle = condition(0);
  EXPECT_EQ(try_node(graph_, handle + 4, cudaGraphCondTypeIf, 1, nullptr), cudaErrorInvalidValue) << "no handle";
  EXPECT_EQ(try_node(graph_, handle, cudaGraphCondTypeIf, 3, nullptr), cudaErrorInvalidValue) << "three bodies";
  EXPECT_EQ(try_node(graph_, handle, cudaGraphCondTypeWhile, 2, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(try_node(graph_, handle, cudaGraphCondTypeSwitch, 0, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(try_node(graph_, handle, static_cast<cudaGraphConditionalNodeType>(9), 1, nullptr), cudaErrorInvalidValue);
  Handle made;
  EXPECT_EQ(cudaGraphConditionalHandleCreate(&made, graph_, 0, 2), cudaErrorInvalidValue) << "an unknown flag";
  EXPECT_EQ(cudaGraphConditionalHandleCreate(nullptr, graph_, 0, 0), cudaErrorInvalidValue);
}

TEST_F(GraphConditionTest, ABodyThatAllocatesIsRefusedByName) {
  const cudaGraph_t body = add_node(graph_, condition(0), cudaGraphCondTypeIf, 1).front();
  cudaMemAllocNodeParams p{};
  p.poolProps.allocType = cudaMemAllocationTypePinned;
  p.poolProps.location.type = cudaMemLocationTypeDevice;
  p.bytesize = 64;
  cudaGraphNode_t node;
  ASSERT_EQ(cudaGraphAddMemAllocNode(&node, body, nullptr, 0, &p), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph_, 0), cudaErrorNotSupported);
}

}  // namespace
}  // namespace heddle::client
