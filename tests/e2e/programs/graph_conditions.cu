// Conditional nodes of CUDA graphs: Collatz sequences, a while around an if and else, captured and built by hand; a
// switch; and a second launch of each. The numbers are checked against the host's. Prints PASS.
#include <cstdio>
#include <cstdlib>

#include "check.h"

struct State {
  unsigned number, steps, ups;
};

__global__ void look(const State* state, cudaGraphConditionalHandle odd) {
  cudaGraphSetConditional(odd, state->number % 2);
}
__global__ void up(State* state) {
  state->number = 3 * state->number + 1;
  state->ups += 1;
}
__global__ void down(State* state) {
  state->number /= 2;
}
__global__ void step(State* state, cudaGraphConditionalHandle more) {
  state->steps += 1;
  cudaGraphSetConditional(more, state->number != 1);
}
__global__ void choose(const State* state, cudaGraphConditionalHandle which) {
  cudaGraphSetConditional(which, state->steps % 4);
}
__global__ void say(State* state, unsigned which) {
  state->ups = which;
}

static cudaGraph_t* add_choice(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                               cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type, unsigned size) {
  cudaGraphNodeParams p = {};
  p.type = cudaGraphNodeTypeConditional;
  p.conditional.handle = handle;
  p.conditional.type = type;
  p.conditional.size = size;
#if CUDART_VERSION >= 13000
  CHECK(cudaGraphAddNode(node, graph, before, nullptr, before ? 1 : 0, &p));
#else
  CHECK(cudaGraphAddNode(node, graph, before, before ? 1 : 0, &p));
#endif
  return p.conditional.phGraph_out;
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, const cudaGraphNode_t* before, void* kernel, void** arguments) {
  cudaKernelNodeParams p = {};
  p.func = kernel;
  p.gridDim = p.blockDim = dim3(1);
  p.kernelParams = arguments;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddKernelNode(&node, graph, before, before ? 1 : 0, &p));
  return node;
}

// The body of the while: by hand, but for what stands in its if and else, which a stream captures.
static cudaGraph_t collatz(State* state, cudaStream_t stream) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle more, odd;
  CHECK(cudaGraphConditionalHandleCreate(&more, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNode_t loop;
  const cudaGraph_t body = add_choice(&loop, graph, nullptr, more, cudaGraphCondTypeWhile, 1)[0];
  CHECK(cudaGraphConditionalHandleCreate(&odd, body, 0, 0));
  void* look_arguments[] = {&state, &odd};
  const cudaGraphNode_t looked = add_kernel(body, nullptr, reinterpret_cast<void*>(look), look_arguments);
  cudaGraphNode_t chosen;
  cudaGraph_t* const either = add_choice(&chosen, body, &looked, odd, cudaGraphCondTypeIf, 2);
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaStreamBeginCaptureToGraph(stream, either[i], nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
    if (i == 0)
      up<<<1, 1, 0, stream>>>(state);
    else
      down<<<1, 1, 0, stream>>>(state);
    CHECK(cudaStreamEndCapture(stream, nullptr));
  }
  void* step_arguments[] = {&state, &more};
  add_kernel(body, &chosen, reinterpret_cast<void*>(step), step_arguments);
  return graph;
}

static State expected(unsigned number) {
  State state = {number, 0, 0};
  for (; state.steps == 0 || state.number != 1; ++state.steps) {
    if (state.number % 2) ++state.ups;
    state.number = state.number % 2 ? 3 * state.number + 1 : state.number / 2;
  }
  return state;
}

static bool counts(State* state, cudaStream_t stream) {
  const cudaGraph_t graph = collatz(state, stream);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  bool right = true;
  for (const unsigned number : {27u, 97u, 6u}) {
    State now = {number, 0, 0};
    CHECK(cudaMemcpyAsync(state, &now, sizeof now, cudaMemcpyHostToDevice, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaMemcpyAsync(&now, state, sizeof now, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    const State wanted = expected(number);
    const bool same = now.number == wanted.number && now.steps == wanted.steps && now.ups == wanted.ups;
    if (!same)
      std::printf("%u: %u steps, %u up, not %u and %u\n", number, now.steps, now.ups, wanted.steps, wanted.ups);
    right &= same;
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return right;
}

// A switch in a stream that captures, with three bodies for four values.
static bool switches(State* state, cudaStream_t stream) {
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  cudaStreamCaptureStatus status;
  cudaGraph_t graph;
  const cudaGraphNode_t* before;
  size_t count;
#if CUDART_VERSION >= 13000
  CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr));
#else
  CHECK(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, nullptr, nullptr));
#endif
  cudaGraphConditionalHandle which;
  CHECK(cudaGraphConditionalHandleCreate(&which, graph, 0, 0));
  choose<<<1, 1, 0, stream>>>(state, which);
#if CUDART_VERSION >= 13000
  CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &before, nullptr, &count));
#else
  CHECK(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, nullptr, &before, &count));
#endif
  if (count != 1) return false;
  cudaGraphNode_t chosen;
  cudaGraph_t* const bodies = add_choice(&chosen, graph, before, which, cudaGraphCondTypeSwitch, 3);
#if CUDART_VERSION >= 13000
  CHECK(cudaStreamUpdateCaptureDependencies(stream, &chosen, nullptr, 1, cudaStreamSetCaptureDependencies));
#else
  CHECK(cudaStreamUpdateCaptureDependencies(stream, &chosen, 1, cudaStreamSetCaptureDependencies));
#endif
  CHECK(cudaStreamEndCapture(stream, &graph));
  for (unsigned i = 0; i < 3; ++i) {
    unsigned number = 10 + i;
    void* arguments[] = {&state, &number};
    add_kernel(bodies[i], nullptr, reinterpret_cast<void*>(say), arguments);
  }
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  bool right = true;
  for (unsigned i = 0; i < 4; ++i) {
    State now = {0, i, 99};
    CHECK(cudaMemcpy(state, &now, sizeof now, cudaMemcpyHostToDevice));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&now, state, sizeof now, cudaMemcpyDeviceToHost));
    right &= now.ups == (i < 3 ? 10 + i : 99);
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return right;
}

int main() {
  State* state;
  cudaStream_t stream;
  CHECK(cudaMalloc(&state, sizeof *state));
  CHECK(cudaStreamCreate(&stream));
  const bool right = counts(state, stream), chose = switches(state, stream);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(state));
  if (right && chose) return std::puts("PASS"), 0;
  return std::printf("counts %d, switches %d: FAIL\n", right, chose), 1;
}
