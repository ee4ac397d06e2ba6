// Graphs and stream capture, against a heddled and workers in threads of this process.

#include <heddle/task.h>

#include <cstdio>
#include <mutex>

#include "client/testing/cuda_graph_api.h"
#include "client/testing/session_test.h"

// The thread that makes host calls, the workers' and the test meet by way of the ring, which client and worker map at
// two places: ThreadSanitizer cannot follow that.
// NOLINTBEGIN: the name is the sanitizer's.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:heddle::client::copy_rows_on_host\nrace:heddle::client::testing::FakeHeddled::execute\n";
}
// NOLINTEND

namespace heddle::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::launch_add;
using testing::let_kernels_add;
using testing::program;

const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new testing::Environment({.devices = 2, .budget = 64 * kMiB}));

class GraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory_), 16 * sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaMemset(memory_, 0, 16 * sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&other_), cudaSuccess);
    let_kernels_add();
  }
  void TearDown() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(other_), cudaSuccess);
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
    cudaGetLastError();
  }

  // memory_[to] = memory_[from] + number
  cudaGraphNode_t add_kernel(cudaGraph_t graph, int to, int number, int from,
                             const std::vector<cudaGraphNode_t>& before = {}) {
    cudaGraphNode_t node = nullptr;
    const Kernel kernel(memory_ + to, number, memory_ + from);
    EXPECT_EQ(cudaGraphAddKernelNode(&node, graph, before.data(), before.size(), &kernel.parameters), cudaSuccess);
    return node;
  }
  struct Kernel {
    Kernel(int* target, int value, int* source) : to(target), number(value), from(source) {}
    Kernel(const Kernel&) = delete;
    int *to, number, *from;
    void* arguments[3] = {&to, &number, &from};
    cudaKernelNodeParams parameters{&program().add, {1, 1, 1}, {32, 1, 1}, 0, arguments, nullptr};
  };
  cudaError_t launch(int to, int number, int from, cudaStream_t stream) {
    return launch_add(memory_ + to, number, memory_ + from, stream);
  }
  int value(int index) {
    int read = -1;
    EXPECT_EQ(cudaMemcpy(&read, memory_ + index, sizeof read, cudaMemcpyDeviceToHost), cudaSuccess);
    return read;
  }
  cudaGraphExec_t instantiate(cudaGraph_t graph) {
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    return exec;
  }
  // Instantiates, launches, destroys.
  void run(cudaGraph_t graph) {
    cudaGraphExec_t exec = instantiate(graph);
    EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  }
  size_t node_count(cudaGraph_t graph) {
    size_t count = 0;
    EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &count), cudaSuccess);
    return count;
  }
  cudaStreamCaptureStatus status(cudaStream_t stream) {
    cudaStreamCaptureStatus found = cudaStreamCaptureStatusNone;
    EXPECT_EQ(cudaStreamIsCapturing(stream, &found), cudaSuccess);
    return found;
  }
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, mode), cudaSuccess);
  }
  // Ends a capture that a call has broken.
  void end_broken() {
    cudaGraph_t graph;
    EXPECT_EQ(status(stream_), cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(status(stream_), cudaStreamCaptureStatusNone);
  }

  int* memory_ = nullptr;
  cudaStream_t stream_ = nullptr, other_ = nullptr;
};

TEST_F(GraphTest, CapturedWorkRunsAtEveryLaunchAndNotBefore) {
  int back = -1;
  cudaGraph_t graph;
  begin();
  EXPECT_EQ(status(stream_), cudaStreamCaptureStatusActive);
  ASSERT_EQ(launch(0, 1, 0, stream_), cudaSuccess);
  ASSERT_EQ(launch(1, 10, 0, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(&back, memory_ + 1, sizeof back, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(node_count(graph), 3u);
  EXPECT_EQ(value(0), 0) << "captured, not run";
  cudaGraphExec_t exec = instantiate(graph);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess) << "the instantiated one needs it no more";
  for (int round = 1; round <= 3; ++round) {
    ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(back, 10 + round);
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaErrorInvalidValue);
}

TEST_F(GraphTest, PageableMemoryIsReadWhenItIsItsTurn) {
  static int source;
  source = 1;
  int back = 0;
  cudaGraph_t graph;
  begin();
  ASSERT_EQ(cudaLaunchHostFunc(
                stream_, [](void*) { source *= 7; }, nullptr),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(memory_, &source, sizeof source, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  ASSERT_EQ(launch(1, 1, 0, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(&back, memory_ + 1, sizeof back, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphExec_t exec = instantiate(graph);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, other_), cudaSuccess) << "behind the first, though in another stream";
  ASSERT_EQ(cudaStreamSynchronize(other_), cudaSuccess);
  EXPECT_EQ(back, 50);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

//        A
//      /   \          captured over two streams, with events
//     B     C
//      \   /
//        D
TEST_F(GraphTest, OtherStreamsJoinByEvents) {
  cudaEvent_t fork, join;
  ASSERT_EQ(cudaEventCreate(&fork), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&join), cudaSuccess);
  begin();
  ASSERT_EQ(launch(0, 1, 0, stream_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(fork, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other_, fork, 0), cudaSuccess);
  EXPECT_EQ(status(other_), cudaStreamCaptureStatusActive);
  ASSERT_EQ(launch(1, 10, 0, stream_), cudaSuccess);
  ASSERT_EQ(launch(2, 20, 0, other_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(join, other_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream_, join, 0), cudaSuccess);
  ASSERT_EQ(launch(3, 100, 2, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(join), cudaErrorCapturedEvent);
  end_broken();

  begin();
  ASSERT_EQ(launch(0, 1, 0, stream_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(fork, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other_, fork, 0), cudaSuccess);
  ASSERT_EQ(launch(1, 10, 0, stream_), cudaSuccess);
  ASSERT_EQ(launch(2, 20, 0, other_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(join, other_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream_, join, 0), cudaSuccess);
  ASSERT_EQ(launch(3, 100, 2, stream_), cudaSuccess);
  cudaGraph_t graph;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  size_t edges = 0;
  EXPECT_EQ(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges), cudaSuccess);
  EXPECT_EQ(edges, 4u);
  run(graph);
  EXPECT_EQ(value(1), 11);
  EXPECT_EQ(value(3), 121);
  EXPECT_EQ(cudaEventRecord(join, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(join), cudaSuccess) << "recorded outside of a capture since";
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(join), cudaSuccess);
}

TEST_F(GraphTest, WhatNobodyWaitsForIsUnjoined) {
  cudaEvent_t fork;
  ASSERT_EQ(cudaEventCreate(&fork), cudaSuccess);
  begin();
  ASSERT_EQ(cudaEventRecord(fork, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other_, fork, 0), cudaSuccess);
  ASSERT_EQ(launch(2, 20, 0, other_), cudaSuccess);
  cudaGraph_t graph;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(status(other_), cudaStreamCaptureStatusNone);
  EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
}

TEST_F(GraphTest, StreamsThatJoinedMayBeDestroyed) {
  cudaGraph_t graph;
  cudaEvent_t fork, joined;
  ASSERT_EQ(cudaEventCreate(&fork), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&joined), cudaSuccess);
  for (const bool joins : {true, false}) {
    begin();
    ASSERT_EQ(launch(0, 1, 0, stream_), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(fork, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(other_, fork, 0), cudaSuccess);
    ASSERT_EQ(launch(1, 10, 0, other_), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(joined, other_), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(other_), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&other_), cudaSuccess);
    EXPECT_EQ(status(other_), cudaStreamCaptureStatusNone);
    if (joins) {
      ASSERT_EQ(cudaStreamWaitEvent(stream_, joined, 0), cudaSuccess);
    }
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), joins ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    if (!joins) continue;
    run(graph);
    EXPECT_EQ(value(1), 11);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(joined), cudaSuccess);
}

TEST_F(GraphTest, CallsThatWaitBreakTheCapture) {
  cudaGraph_t graph;
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorIllegalState);
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(launch(0, 1, 0, stream_), cudaErrorStreamCaptureInvalidated);
  end_broken();
  begin();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  end_broken();
  begin();
  EXPECT_EQ(launch(0, 1, 0, nullptr), cudaErrorStreamCaptureImplicit) << "the legacy stream waits for blocking ones";
  end_broken();
  cudaEvent_t outside;
  ASSERT_EQ(cudaEventCreate(&outside), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(outside, other_), cudaSuccess);
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(stream_, outside, 0), cudaErrorStreamCaptureIsolation);
  end_broken();
  EXPECT_EQ(cudaEventDestroy(outside), cudaSuccess);
}

TEST_F(GraphTest, UnsafeCallsDependOnTheModes) {
  void* memory;
  begin(cudaStreamCaptureModeGlobal);
  std::thread([] {
    void* elsewhere;
    EXPECT_EQ(cudaMalloc(&elsewhere, 4), cudaErrorStreamCaptureUnsupported);
  }).join();
  end_broken();
  begin(cudaStreamCaptureModeThreadLocal);
  std::thread([this] {
    void* elsewhere;
    cudaGraph_t graph;
    EXPECT_EQ(cudaMalloc(&elsewhere, 4), cudaSuccess);
    EXPECT_EQ(cudaFree(elsewhere), cudaSuccess);
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorStreamCaptureUnsupported);
  end_broken();
}

TEST_F(GraphTest, CaptureTellsWhereItStands) {
  begin();
  cudaStreamCaptureStatus found;
  unsigned long long id = 0;
  cudaGraph_t into = nullptr, graph;
  const cudaGraphNode_t* nodes;
  size_t count = 0;
  ASSERT_EQ(launch(0, 1, 0, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamGetCaptureInfo(stream_, &found, &id, &into, &nodes, nullptr, &count), cudaSuccess);
  EXPECT_EQ(found, cudaStreamCaptureStatusActive);
  EXPECT_NE(id, 0u);
  ASSERT_EQ(count, 1u);
  cudaGraphNodeType type;
  EXPECT_EQ(cudaGraphNodeGetType(nodes[0], &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeKernel);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(graph, into);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(GraphTest, NodesRunBehindThoseTheyDependOn) {
  static std::mutex mutex;
  static std::vector<int> order;
  order.clear();
  cudaGraph_t graph;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  int numbers[] = {0, 1, 2, 3};
  cudaGraphNode_t nodes[4];
  for (int i = 0; i < 4; ++i) {
    const cudaHostNodeParams host{[](void* data) {
                                    const std::lock_guard lock(mutex);
                                    order.push_back(*static_cast<int*>(data));
                                  },
                                  &numbers[i]};
    ASSERT_EQ(cudaGraphAddHostNode(&nodes[i], graph, nullptr, 0, &host), cudaSuccess);
  }
  const cudaGraphNode_t from[] = {nodes[3], nodes[1], nodes[2]}, to[] = {nodes[1], nodes[2], nodes[0]};
  ASSERT_EQ(cudaGraphAddDependencies(graph, from, to, nullptr, 3), cudaSuccess);
  EXPECT_EQ(cudaGraphAddDependencies(graph, from, to, nullptr, 1), cudaErrorInvalidValue) << "it is there already";
  run(graph);
  {
    const std::lock_guard lock(mutex);
    EXPECT_THAT(order, ElementsAre(3, 1, 2, 0));
  }
  size_t count = 4;
  cudaGraphNode_t found[4];
  ASSERT_EQ(cudaGraphGetRootNodes(graph, found, &count), cudaSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(found[0], nodes[3]);
  EXPECT_EQ(found[1], nullptr);
  count = 4;
  ASSERT_EQ(cudaGraphNodeGetDependentNodes(nodes[1], found, nullptr, &count), cudaSuccess);
  EXPECT_EQ(found[0], nodes[2]);
  cudaGraphExec_t exec;
  ASSERT_EQ(cudaGraphAddDependencies(graph, &nodes[0], &nodes[3], nullptr, 1), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue) << "a cycle";
  EXPECT_EQ(cudaGraphDestroyNode(nodes[2]), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroyNode(nodes[2]), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess) << "broken up";
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaErrorInvalidValue);
}

TEST_F(GraphTest, WideGraphsRunWhole) {
  constexpr int kBranches = 12;  // more than there are streams for
  cudaGraph_t graph;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  const cudaGraphNode_t root = add_kernel(graph, 0, 1, 0);
  std::vector<cudaGraphNode_t> branches;
  for (int i = 1; i <= kBranches; ++i) branches.push_back(add_kernel(graph, i, i, 0, {root}));
  add_kernel(graph, 15, 100, kBranches, branches);
  cudaGraphExec_t exec = instantiate(graph);
  for (int round = 1; round <= 3; ++round) {
    ASSERT_EQ(cudaGraphLaunch(exec, round == 2 ? nullptr : stream_), cudaSuccess);
    EXPECT_EQ(value(15), 100 + kBranches + round);
    for (int i = 1; i <= kBranches; ++i) EXPECT_EQ(value(i), i + round);
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(GraphTest, FillsAndCopiesAreNodes) {
  int back[4] = {};
  cudaGraph_t graph;
  cudaGraphNode_t fill, copy, wrong;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaMemsetParams p{memory_, 0, 0x5a, 1, 16, 1};
  ASSERT_EQ(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &p), cudaSuccess);
  p.elementSize = 3;
  EXPECT_EQ(cudaGraphAddMemsetNode(&wrong, graph, nullptr, 0, &p), cudaErrorInvalidValue);
  ASSERT_EQ(cudaGraphAddMemcpyNode1D(&copy, graph, &fill, 1, back, memory_, sizeof back, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(cudaGraphAddMemcpyNode1D(&wrong, graph, nullptr, 0, back, back, 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  cudaGraphExec_t exec = instantiate(graph);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_THAT(back, ElementsAre(0x5a5a5a5a, 0x5a5a5a5a, 0x5a5a5a5a, 0x5a5a5a5a));
  int elsewhere[2] = {};
  ASSERT_EQ(cudaGraphExecMemcpyNodeSetParams1D(exec, copy, elsewhere, memory_, 8, cudaMemcpyDeviceToHost), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_THAT(elsewhere, ElementsAre(0x5a5a5a5a, 0x5a5a5a5a));
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(GraphTest, InstantiatedKernelsChange) {
  cudaGraph_t graph;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  const cudaGraphNode_t node = add_kernel(graph, 1, 5, 0);
  cudaGraphExec_t exec = instantiate(graph);
  cudaKernelNodeParams shown;
  ASSERT_EQ(cudaGraphKernelNodeGetParams(node, &shown), cudaSuccess);
  EXPECT_EQ(shown.func, &program().add);
  EXPECT_EQ(*static_cast<int*>(shown.kernelParams[1]), 5);
  const Kernel other(memory_ + 2, 7, memory_);
  ASSERT_EQ(cudaGraphExecKernelNodeSetParams(exec, node, &other.parameters), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(value(1), 0);
  EXPECT_EQ(value(2), 7);
  ASSERT_EQ(cudaGraphNodeSetEnabled(exec, node, 0), cudaSuccess);
  ASSERT_EQ(cudaMemset(memory_, 0, 64), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(value(2), 0);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(GraphTest, UpdateTakesOverGraphsOfTheSameForm) {
  cudaGraph_t first, second, longer;
  for (cudaGraph_t* graph : {&first, &second, &longer}) ASSERT_EQ(cudaGraphCreate(graph, 0), cudaSuccess);
  add_kernel(first, 2, 1, 1, {add_kernel(first, 1, 1, 0)});
  add_kernel(second, 2, 20, 1, {add_kernel(second, 1, 10, 0)});
  add_kernel(longer, 3, 1, 2, {add_kernel(longer, 2, 1, 1, {add_kernel(longer, 1, 1, 0)})});
  cudaGraphExec_t exec = instantiate(first);
  cudaGraphExecUpdateResultInfo info;
  EXPECT_EQ(cudaGraphExecUpdate(exec, longer, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  ASSERT_EQ(cudaGraphExecUpdate(exec, second, &info), cudaSuccess);
  EXPECT_EQ(info.result, cudaGraphExecUpdateSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(value(2), 30);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  for (cudaGraph_t graph : {first, second, longer}) EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(GraphTest, GraphsInGraphsAndClones) {
  cudaGraph_t inner, outer, clone, embedded;
  ASSERT_EQ(cudaGraphCreate(&inner, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphCreate(&outer, 0), cudaSuccess);
  const cudaGraphNode_t in_inner = add_kernel(inner, 1, 10, 0);
  const cudaGraphNode_t before = add_kernel(outer, 0, 1, 0);
  cudaGraphNode_t child, found;
  ASSERT_EQ(cudaGraphAddChildGraphNode(&child, outer, &before, 1, inner), cudaSuccess);
  add_kernel(outer, 2, 100, 1, {child});
  ASSERT_EQ(cudaGraphChildGraphNodeGetGraph(child, &embedded), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(embedded), cudaErrorInvalidValue) << "the node owns it";
  ASSERT_EQ(cudaGraphClone(&clone, outer), cudaSuccess);
  ASSERT_EQ(cudaGraphNodeFindInClone(&found, before, clone), cudaSuccess);
  EXPECT_NE(found, before);
  EXPECT_EQ(cudaGraphNodeFindInClone(&found, in_inner, clone), cudaErrorInvalidValue);
  cudaGraphExec_t exec = instantiate(outer);
  EXPECT_EQ(cudaGraphDestroy(outer), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(value(2), 111);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  run(clone);
  EXPECT_EQ(value(2), 112);
  EXPECT_EQ(cudaGraphDestroy(clone), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(inner), cudaSuccess);
}

TEST_F(GraphTest, ChildGraphsChangeInside) {
  cudaGraph_t inner, outer, other;
  for (cudaGraph_t* graph : {&inner, &outer, &other}) ASSERT_EQ(cudaGraphCreate(graph, 0), cudaSuccess);
  add_kernel(inner, 2, 10, 1, {add_kernel(inner, 1, 10, 0)});
  add_kernel(other, 2, 20, 1, {add_kernel(other, 1, 20, 0)});
  const cudaGraphNode_t before = add_kernel(outer, 0, 1, 0);
  cudaGraphNode_t child;
  ASSERT_EQ(cudaGraphAddChildGraphNode(&child, outer, &before, 1, inner), cudaSuccess);
  cudaGraphExec_t exec = instantiate(outer);
  EXPECT_EQ(cudaGraphExecChildGraphNodeSetParams(exec, child, outer), cudaErrorInvalidValue) << "another form";
  ASSERT_EQ(cudaGraphExecChildGraphNodeSetParams(exec, child, other), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(value(2), 41);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  for (cudaGraph_t graph : {inner, outer, other}) EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(GraphTest, CapturedLaunchesOfGraphsBecomeChildren) {
  cudaGraph_t inner, outer;
  ASSERT_EQ(cudaGraphCreate(&inner, 0), cudaSuccess);
  add_kernel(inner, 1, 10, 0);
  cudaGraphExec_t exec = instantiate(inner);
  begin();
  ASSERT_EQ(launch(0, 1, 0, stream_), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &outer), cudaSuccess);
  run(outer);
  EXPECT_EQ(value(1), 11);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(inner), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(outer), cudaSuccess);
}

TEST_F(GraphTest, ACaptureIntoAGraphEndsWithoutAPlaceForIt) {
  cudaGraph_t graph;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCaptureToGraph(stream_, graph, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed),
            cudaSuccess);
  ASSERT_EQ(launch(0, 1, 0, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, nullptr), cudaSuccess);
  run(graph);
  EXPECT_EQ(value(0), 1);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  begin();
  EXPECT_EQ(cudaStreamEndCapture(stream_, nullptr), cudaErrorInvalidValue) << "nobody would have it";
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess) << "so it goes on";
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(GraphTest, EventNodesOrderGraphsAndStreams) {
  cudaEvent_t event;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  cudaGraph_t graph;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  const cudaGraphNode_t kernel = add_kernel(graph, 0, 1, 0);
  cudaGraphNode_t record;
  ASSERT_EQ(cudaGraphAddEventRecordNode(&record, graph, &kernel, 1, event), cudaSuccess);
  cudaGraphExec_t exec = instantiate(graph);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other_, event, 0), cudaSuccess);
  ASSERT_EQ(launch(1, 1, 0, other_), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(value(1), 2);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(GraphTest, WhatIsNotSupportedIsRefused) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaGraphNodeParams semaphore{};
  semaphore.type = cudaGraphNodeTypeExtSemaphoreWait;
  EXPECT_EQ(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &semaphore), cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch), cudaErrorNotSupported);
  add_kernel(graph, 0, 1, 0);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  add_kernel(graph, 0, 1, 0);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaErrorNotSupported) << "two devices";
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(GraphTest, UserObjectsLiveAsLongAsGraphsNeedThem) {
  static int destroyed;
  destroyed = 0;
  cudaUserObject_t object;
  ASSERT_EQ(
      cudaUserObjectCreate(
          &object, &destroyed, [](void* counter) { ++*static_cast<int*>(counter); }, 1, cudaUserObjectNoDestructorSync),
      cudaSuccess);
  cudaGraph_t graph;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  add_kernel(graph, 0, 1, 0);
  ASSERT_EQ(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove), cudaSuccess);
  cudaGraphExec_t exec = instantiate(graph);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(destroyed, 0);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(cudaUserObjectRelease(object, 1), cudaErrorInvalidValue);
}

TEST_F(GraphTest, NothingIsFreedEarlyOnceThereAreGraphs) {
  cudaGraph_t graph;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  void* buffer;
  ASSERT_EQ(cudaMalloc(&buffer, 4 * kMiB), cudaSuccess);
  ASSERT_EQ(cudaMemset(buffer, 1, 4), cudaSuccess);
  heddle_task_api()->free_early(buffer);
  EXPECT_EQ(cudaMemset(buffer, 1, 4), cudaSuccess) << "it is still there";
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(GraphTest, GraphsArePrintedAsDot) {
  cudaGraph_t graph;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  add_kernel(graph, 1, 1, 0, {add_kernel(graph, 0, 1, 0)});
  const std::string path = ::testing::TempDir() + "heddle-graph-test.dot";
  ASSERT_EQ(cudaGraphDebugDotPrint(graph, path.c_str(), 0), cudaSuccess);
  std::string text(4096, '\0');
  FILE* const file = std::fopen(path.c_str(), "r");
  ASSERT_NE(file, nullptr);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  std::remove(path.c_str());
  EXPECT_THAT(text, HasSubstr("kernel\\nadd"));
  EXPECT_THAT(text, HasSubstr(" -> "));
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

}  // namespace
}  // namespace heddle::client
