// Graphs that allocate and free memory, against a heddled and workers in threads of this process.

#include "client/testing/cuda_graph_api.h"
#include "client/testing/session_test.h"

namespace heddle::client {
namespace {

using testing::launch_add;
using testing::let_kernels_add;
using testing::program;

constexpr uint64_t kBytes = 4 * kMiB, kBudget = 64 * kMiB;

const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new testing::Environment({.devices = 2, .budget = kBudget}));

class GraphMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&other_), cudaSuccess);
    ASSERT_EQ(cudaGraphCreate(&graph_, 0), cudaSuccess);
    let_kernels_add();
  }
  void TearDown() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(other_), cudaSuccess);
    EXPECT_EQ(held(), 0u) << "graphs hold nothing once they are gone";
    cudaGetLastError();
  }

  static cudaMemAllocNodeParams of_device(size_t bytes, int device = 0) {
    cudaMemAllocNodeParams p{};
    p.poolProps.allocType = cudaMemAllocationTypePinned;
    p.poolProps.location = {cudaMemLocationTypeDevice, device};
    p.bytesize = bytes;
    return p;
  }
  struct Allocation {
    cudaGraphNode_t node;
    int* memory;
  };
  static Allocation allocate(cudaGraph_t graph, size_t bytes, const std::vector<cudaGraphNode_t>& before = {}) {
    Allocation made{};
    cudaMemAllocNodeParams p = of_device(bytes);
    EXPECT_EQ(cudaGraphAddMemAllocNode(&made.node, graph, before.data(), before.size(), &p), cudaSuccess);
    made.memory = static_cast<int*>(p.dptr);
    return made;
  }
  static cudaGraphNode_t free(cudaGraph_t graph, void* memory, const std::vector<cudaGraphNode_t>& before = {}) {
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaGraphAddMemFreeNode(&node, graph, before.data(), before.size(), memory), cudaSuccess);
    return node;
  }
  // The first byte; what lies behind it in new memory is 0.
  static cudaGraphNode_t fill(cudaGraph_t graph, int* memory, unsigned value,
                              const std::vector<cudaGraphNode_t>& before) {
    cudaGraphNode_t node = nullptr;
    const cudaMemsetParams p{memory, 0, value, 1, 1, 1};
    EXPECT_EQ(cudaGraphAddMemsetNode(&node, graph, before.data(), before.size(), &p), cudaSuccess);
    return node;
  }
  static cudaGraphExec_t instantiate(cudaGraph_t graph, unsigned long long flags = 0) {
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, flags), cudaSuccess);
    return exec;
  }
  // A graph that allocates and frees, and nothing else; `memory` is where.
  static cudaGraphExec_t transient(size_t bytes, int** memory = nullptr) {
    cudaGraph_t graph;
    EXPECT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    const Allocation made = allocate(graph, bytes);
    free(graph, made.memory, {made.node});
    cudaGraphExec_t exec = instantiate(graph);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    if (memory) *memory = made.memory;
    return exec;
  }
  static uint64_t attribute(cudaGraphMemAttributeType which) {
    uint64_t value = 0;
    EXPECT_EQ(cudaDeviceGetGraphMemAttribute(0, which, &value), cudaSuccess);
    return value;
  }
  static uint64_t held() { return attribute(cudaGraphMemAttrReservedMemCurrent); }
  static int read(const int* memory) {
    int value = -1;
    EXPECT_EQ(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost), cudaSuccess);
    return value;
  }

  cudaStream_t stream_ = nullptr, other_ = nullptr;
  cudaGraph_t graph_ = nullptr;
};

TEST_F(GraphMemoryTest, MemoryComesWithTheFirstLaunchAndStaysUntilItIsFreed) {
  const Allocation made = allocate(graph_, kBytes);
  fill(graph_, made.memory, 7, {made.node});
  EXPECT_EQ(held(), 0u) << "an address, no memory";
  EXPECT_NE(cudaMemset(made.memory, 0, 4), cudaSuccess);
  cudaGraphExec_t exec = instantiate(graph_);
  EXPECT_EQ(held(), 0u);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(held(), kBytes);
  ASSERT_EQ(launch_add(made.memory + 1, 1, made.memory, stream_), cudaSuccess) << "outside of the graph";
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(read(made.memory + 1), 8);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(read(made.memory), 7) << "only a free ends it";
  EXPECT_EQ(cudaFree(made.memory), cudaSuccess);
  EXPECT_EQ(cudaFree(made.memory), cudaErrorInvalidValue);
}

TEST_F(GraphMemoryTest, MemoryThatTheGraphFreesStaysForItsNextLaunch) {
  const Allocation made = allocate(graph_, kBytes);
  const cudaGraphNode_t filled = fill(graph_, made.memory, 7, {made.node});
  free(graph_, made.memory, {filled});
  cudaGraphExec_t exec = instantiate(graph_);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(cudaGraphLaunch(exec, round == 1 ? other_ : stream_), cudaSuccess);
    EXPECT_EQ(held(), kBytes);
    EXPECT_EQ(cudaFreeAsync(made.memory, stream_), cudaErrorInvalidValue) << "freed already";
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphMemoryTest, WhatIsNotFreedCannotBeAllocatedAgain) {
  const Allocation made = allocate(graph_, kBytes);
  cudaGraphExec_t exec = instantiate(graph_);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaErrorInvalidValue);
  ASSERT_EQ(cudaFreeAsync(made.memory, other_), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(cudaFree(made.memory), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphMemoryTest, AutoFreeMakesRoomForTheNextLaunch) {
  const Allocation made = allocate(graph_, kBytes);
  fill(graph_, made.memory, 3, {made.node});
  cudaGraphExec_t exec = instantiate(graph_, cudaGraphInstantiateFlagAutoFreeOnLaunch);
  for (int round = 0; round < 3; ++round) ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(held(), kBytes);
  EXPECT_EQ(read(made.memory), 3);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaFree(made.memory), cudaSuccess);
}

TEST_F(GraphMemoryTest, AnotherGraphMayFree) {
  const Allocation made = allocate(graph_, kBytes);
  cudaGraph_t second;
  ASSERT_EQ(cudaGraphCreate(&second, 0), cudaSuccess);
  free(second, made.memory);
  cudaGraphExec_t first = instantiate(graph_), freeing = instantiate(second);
  EXPECT_EQ(cudaGraphLaunch(freeing, stream_), cudaErrorInvalidValue) << "nothing is there yet";
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(cudaGraphLaunch(first, stream_), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(freeing, stream_), cudaSuccess);
  }
  EXPECT_EQ(cudaGraphExecDestroy(first), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(freeing), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(second), cudaSuccess);
}

// a -- free a -- b: b may lie where a lay. c knows nothing of the free.
TEST_F(GraphMemoryTest, AnAddressIsUsedAgainBehindItsFreeOnly) {
  const Allocation a = allocate(graph_, kBytes);
  const cudaGraphNode_t freed = free(graph_, a.memory, {a.node});
  const Allocation c = allocate(graph_, kBytes, {a.node});
  EXPECT_NE(c.memory, a.memory);
  const Allocation b = allocate(graph_, kBytes, {freed});
  EXPECT_EQ(b.memory, a.memory);
  EXPECT_NE(allocate(graph_, kBytes, {freed}).memory, a.memory) << "taken";
  cudaGraphExec_t exec = instantiate(graph_);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(held(), 3 * kBytes);
  EXPECT_EQ(cudaFree(b.memory), cudaSuccess) << "what lies there now";
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaErrorInvalidValue) << "c is not freed";
  EXPECT_EQ(cudaFree(c.memory), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess) << "the third";
}

TEST_F(GraphMemoryTest, SmallAllocationsOfAGraphShareMemory) {
  const Allocation one = allocate(graph_, 100), two = allocate(graph_, 100);
  EXPECT_NE(one.memory, two.memory);
  fill(graph_, one.memory, 1, {one.node});
  fill(graph_, two.memory, 2, {two.node});
  cudaGraphExec_t exec = instantiate(graph_);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(held(), 2 * kMiB);
  EXPECT_EQ(cudaFree(one.memory), cudaSuccess);
  EXPECT_EQ(cudaDeviceGraphMemTrim(0), cudaSuccess);
  EXPECT_EQ(read(two.memory), 2) << "still live";
  EXPECT_EQ(cudaFree(two.memory), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphMemoryTest, GraphsOneAfterAnotherShareMemory) {
  std::vector<cudaGraphExec_t> execs(4);
  std::vector<int*> memory(4);
  for (size_t i = 0; i < execs.size(); ++i) execs[i] = transient(kBytes, &memory[i]);
  EXPECT_NE(memory[0], memory[1]);
  for (int round = 0; round < 2; ++round) {
    for (cudaGraphExec_t exec : execs) {
      ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
      EXPECT_EQ(held(), kBytes);
    }
  }
  for (cudaGraphExec_t exec : execs) EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphMemoryTest, GraphsThatMayRunAtOnceDoNot) {
  static std::atomic<bool> released;
  released = false;
  cudaGraphExec_t first = transient(kBytes), second = transient(kBytes);
  const auto wait = [](void*) {
    while (!released) std::this_thread::yield();
  };
  ASSERT_EQ(cudaLaunchHostFunc(stream_, wait, nullptr), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(first, stream_), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(second, other_), cudaSuccess);
  EXPECT_EQ(held(), 2 * kBytes);
  released = true;
  EXPECT_EQ(cudaGraphExecDestroy(first), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(second), cudaSuccess);
}

TEST_F(GraphMemoryTest, WhatIsIdleGoesBackByTrim) {
  const uint64_t none = 0;
  EXPECT_EQ(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, const_cast<uint64_t*>(&none)), cudaSuccess);
  cudaGraphExec_t exec = transient(kBytes);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(attribute(cudaGraphMemAttrUsedMemCurrent), kBytes);
  ASSERT_EQ(cudaDeviceGraphMemTrim(0), cudaSuccess);
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(attribute(cudaGraphMemAttrReservedMemHigh), kBytes);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess) << "the same addresses have memory again";
  EXPECT_EQ(held(), kBytes);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  uint64_t wrong = kBytes;
  EXPECT_EQ(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &wrong), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &wrong), cudaErrorInvalidValue);
}

TEST_F(GraphMemoryTest, WhatIsIdleMakesRoomForOthers) {
  cudaGraphExec_t exec = transient(kBudget / 2);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  void* buffer = nullptr;
  ASSERT_EQ(cudaMalloc(&buffer, kBudget), cudaSuccess);
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaMallocAsync(&buffer, kBudget, stream_), cudaSuccess);
  EXPECT_EQ(held(), 0u);
  ASSERT_EQ(cudaFreeAsync(buffer, stream_), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess) << "pools make room, too";
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphMemoryTest, StreamsThatCaptureMakeMemoryNodes) {
  cudaGraph_t graph;
  int *kept = nullptr, *passing = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(cudaMallocAsync(reinterpret_cast<void**>(&kept), kBytes, stream_), cudaSuccess);
  ASSERT_EQ(cudaMallocAsync(reinterpret_cast<void**>(&passing), kBytes, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(passing, 0, 4, stream_), cudaSuccess);
  ASSERT_EQ(launch_add(kept, 5, passing, stream_), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(passing, stream_), cudaSuccess);
  int* again = nullptr;
  ASSERT_EQ(cudaMallocAsync(reinterpret_cast<void**>(&again), kBytes, stream_), cudaSuccess);
  EXPECT_EQ(again, passing);
  ASSERT_EQ(cudaFreeAsync(again, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(held(), 0u);
  cudaGraphExec_t exec = instantiate(graph);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    EXPECT_EQ(read(kept), 5);
    ASSERT_EQ(cudaFreeAsync(kept, stream_), cudaSuccess);
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(GraphMemoryTest, OnlyMemoryOfGraphsIsFreedInGraphs) {
  void* buffer = nullptr;
  ASSERT_EQ(cudaMalloc(&buffer, kBytes), cudaSuccess);
  cudaGraphNode_t node;
  EXPECT_EQ(cudaGraphAddMemFreeNode(&node, graph_, nullptr, 0, buffer), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  const Allocation made = allocate(graph_, kBytes);
  free(graph_, made.memory, {made.node});
  EXPECT_EQ(cudaGraphAddMemFreeNode(&node, graph_, &made.node, 1, made.memory), cudaErrorInvalidValue) << "twice";
}

TEST_F(GraphMemoryTest, NodesTellWhatTheyDo) {
  const Allocation made = allocate(graph_, kBytes);
  const cudaGraphNode_t freed = free(graph_, made.memory, {made.node});
  cudaGraphNodeType type;
  ASSERT_EQ(cudaGraphNodeGetType(made.node, &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeMemAlloc);
  ASSERT_EQ(cudaGraphNodeGetType(freed, &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeMemFree);
  cudaMemAllocNodeParams p{};
  ASSERT_EQ(cudaGraphMemAllocNodeGetParams(made.node, &p), cudaSuccess);
  EXPECT_EQ(p.dptr, made.memory);
  EXPECT_EQ(p.bytesize, kBytes);
  EXPECT_EQ(p.poolProps.allocType, cudaMemAllocationTypePinned);
  void* pointer = nullptr;
  ASSERT_EQ(cudaGraphMemFreeNodeGetParams(freed, &pointer), cudaSuccess);
  EXPECT_EQ(pointer, made.memory);
  EXPECT_EQ(cudaGraphMemFreeNodeGetParams(made.node, &pointer), cudaErrorInvalidValue);
  cudaGraphNodeParams any{};
  any.type = cudaGraphNodeTypeMemAlloc;
  any.alloc = of_device(kBytes);
  cudaGraphNode_t node;
  ASSERT_EQ(cudaGraphAddNode(&node, graph_, nullptr, nullptr, 0, &any), cudaSuccess);
  EXPECT_NE(any.alloc.dptr, nullptr);
}

TEST_F(GraphMemoryTest, GraphsWithMemoryNodesStayAsTheyAreAndAreOne) {
  const Allocation made = allocate(graph_, kBytes);
  const cudaGraphNode_t freed = free(graph_, made.memory, {made.node});
  cudaGraph_t copy;
  cudaGraphNode_t node;
  cudaGraphExec_t second;
  EXPECT_EQ(cudaGraphDestroyNode(freed), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphRemoveDependencies(graph_, &made.node, &freed, nullptr, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphClone(&copy, graph_), cudaErrorNotSupported);
  cudaGraph_t parent;
  ASSERT_EQ(cudaGraphCreate(&parent, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, graph_), cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphDestroy(parent), cudaSuccess);
  cudaGraphExec_t exec = instantiate(graph_);
  EXPECT_EQ(cudaGraphInstantiate(&second, graph_, 0), cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  exec = instantiate(graph_);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphMemoryTest, WhatNoDeviceHasIsRefusedAtOnce) {
  cudaGraphNode_t node;
  cudaMemAllocNodeParams p = of_device(2 * kBudget);
  EXPECT_EQ(cudaGraphAddMemAllocNode(&node, graph_, nullptr, 0, &p), cudaErrorMemoryAllocation);
  EXPECT_EQ(p.dptr, nullptr);
  p = of_device(0);
  EXPECT_EQ(cudaGraphAddMemAllocNode(&node, graph_, nullptr, 0, &p), cudaErrorInvalidValue);
  p = of_device(kBytes, 7);
  EXPECT_EQ(cudaGraphAddMemAllocNode(&node, graph_, nullptr, 0, &p), cudaErrorInvalidDevice);
  p = of_device(kBytes);
  const cudaMemAccessDesc peer{{cudaMemLocationTypeDevice, 1}, cudaMemAccessFlagsProtReadWrite};
  p.accessDescs = &peer;
  p.accessDescCount = 1;
  EXPECT_EQ(cudaGraphAddMemAllocNode(&node, graph_, nullptr, 0, &p), cudaErrorNotSupported);
}

}  // namespace
}  // namespace heddle::client
