// Who waits for a graph waits for all of it: host nodes, and copies to pageable memory on a branch of their own, which
// end on the host. Prints PASS.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.h"

#define EXPECT(what)                                     \
  do {                                                   \
    if (!(what)) {                                       \
      std::printf("line %d: not %s\n", __LINE__, #what); \
      std::exit(1);                                      \
    }                                                    \
  } while (false)

constexpr int kCount = 1 << 20, kBlock = 256;
constexpr size_t kBytes = kCount * sizeof(int);
using Nodes = std::vector<cudaGraphNode_t>;

__global__ void fill(int* to, int value) {
  to[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

static std::atomic<bool> slow_done{false};
static void CUDART_CB take_a_while(void*) {
  usleep(100'000);  // who does not wait is long past
  slow_done = true;
}

struct Graph {
  Graph() { CHECK(cudaGraphCreate(&graph, 0)); }
  cudaGraphNode_t fill_with(int* to, int value, const Nodes& before) {
    void* arguments[] = {&to, &value};
    cudaKernelNodeParams p{};
    p.func = reinterpret_cast<void*>(fill);
    p.gridDim = kCount / kBlock;
    p.blockDim = kBlock;
    p.kernelParams = arguments;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, before.data(), before.size(), &p));
    return node;
  }
  cudaGraphNode_t copy(void* to, const void* from, cudaMemcpyKind kind, const Nodes& before) {
    cudaGraphNode_t node;
    CHECK(cudaGraphAddMemcpyNode1D(&node, graph, before.data(), before.size(), to, from, kBytes, kind));
    return node;
  }
  void slow(const Nodes& before) {
    const cudaHostNodeParams p{take_a_while, nullptr};
    cudaGraphNode_t node;
    CHECK(cudaGraphAddHostNode(&node, graph, before.data(), before.size(), &p));
  }
  void join(const Nodes& before) {
    cudaGraphNode_t node;
    CHECK(cudaGraphAddEmptyNode(&node, graph, before.data(), before.size()));
  }
  cudaGraphExec_t instantiate() {
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
  }
  cudaGraph_t graph = nullptr;
};

static cudaStream_t stream, other;
static cudaEvent_t event;
static int *da, *db;

// By the way of that number.
static void wait(int way) {
  if (way == 0) CHECK(cudaStreamSynchronize(stream));
  if (way == 1) CHECK(cudaDeviceSynchronize());
  if (way >= 2 && way <= 4) CHECK(cudaEventRecord(event, stream));
  if (way == 2) CHECK(cudaEventSynchronize(event));
  if (way == 3) {
    CHECK(cudaStreamWaitEvent(other, event, 0));
    CHECK(cudaStreamSynchronize(other));
  }
  while (way == 4 && cudaEventQuery(event) == cudaErrorNotReady) usleep(100);
  while (way == 5 && cudaStreamQuery(stream) == cudaErrorNotReady) usleep(100);
}

static void host_node() {
  Graph graph;
  const auto first = graph.fill_with(da, 1, {});
  graph.fill_with(db, 2, {first});
  graph.slow({first});
  cudaGraphExec_t exec = graph.instantiate();
  for (int way = 0; way < 6; ++way) {
    slow_done = false;
    CHECK(cudaGraphLaunch(exec, stream));
    wait(way);
    EXPECT(slow_done);
  }
  // What comes next in the stream follows the host node, too.
  slow_done = false;
  bool seen = false;
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaLaunchHostFunc(
      stream, [](void* to) { *static_cast<bool*>(to) = slow_done; }, &seen));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(seen);
  CHECK(cudaGraphExecDestroy(exec));
}

// 0: a's copy is made before the second kernel, 1: behind it, 2: both joined, 3: with an empty node at b's end.
static void copies(int shape) {
  std::vector<int> in(kCount, 1), a(kCount), b(kCount);
  Graph graph;
  const auto up = graph.copy(da, in.data(), cudaMemcpyHostToDevice, {});
  const auto first = graph.fill_with(da, 3, {up});
  cudaGraphNode_t out = nullptr;
  if (shape != 1) out = graph.copy(a.data(), da, cudaMemcpyDeviceToHost, {first});
  const auto second = graph.fill_with(db, 4, {first});
  if (shape == 1) out = graph.copy(a.data(), da, cudaMemcpyDeviceToHost, {first});
  if (shape == 2) graph.join({out, second});
  const auto last = graph.copy(b.data(), db, cudaMemcpyDeviceToHost, {second});
  if (shape == 3) graph.join({last});
  cudaGraphExec_t exec = graph.instantiate();
  for (int round = 0; round < 3; ++round) {
    std::fill(a.begin(), a.end(), 0);
    std::fill(b.begin(), b.end(), 0);
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(std::count(b.begin(), b.end(), 4) == kCount);
    EXPECT(std::count(a.begin(), a.end(), 3) == kCount);
  }
  CHECK(cudaGraphExecDestroy(exec));
}

int main() {
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaMalloc(&da, kBytes));
  CHECK(cudaMalloc(&db, kBytes));
  host_node();
  for (int shape = 0; shape < 4; ++shape) copies(shape);
  std::puts("PASS");
}
