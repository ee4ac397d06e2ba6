// Calls of cuBLAS and cuRAND that streams capture: each launch of the graph makes them again, with what lies in memory
// then. Prints PASS. With the argument `native`, without what NVIDIA does not document.

#include <cublas_v2.h>
#include <curand.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void expect(long got, long expected, const char* what, int line) {
  if (got == expected) return;
  std::printf("FAIL: %s (line %d): %ld, expected %ld\n", what, line, got, expected);
  std::exit(1);
}
#define OK(call) expect(static_cast<long>(call), 0, #call, __LINE__)
#define IS(call, expected) expect(static_cast<long>(call), static_cast<long>(expected), #call, __LINE__)

constexpr int kN = 16;
constexpr size_t kBytes = kN * kN * sizeof(float);

struct Matrix {
  Matrix() { OK(cudaMalloc(&device, kBytes)); }
  ~Matrix() { cudaFree(device); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  void fill(float value) {
    const std::vector<float> host(kN * kN, value);
    OK(cudaMemcpy(device, host.data(), kBytes, cudaMemcpyHostToDevice));
  }
  std::vector<float> fetch() const {
    std::vector<float> host(kN * kN);
    OK(cudaMemcpy(host.data(), device, kBytes, cudaMemcpyDeviceToHost));
    return host;
  }
  void is(float value, int line) const {
    for (const float each : fetch()) expect(std::lround(each), std::lround(value), "a number", line);
  }
  float* device = nullptr;
};
#define HOLDS(matrix, value) (matrix).is(value, __LINE__)

cublasHandle_t handle;
cudaStream_t stream;
bool native = false;  // what NVIDIA does not document is not looked at

void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  OK(cudaStreamBeginCapture(stream, mode));
}
cudaGraph_t end() {
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(stream, &graph));
  return graph;
}
cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}
void launch(cudaGraphExec_t exec) {
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
}
// c = alpha a b + beta c
void multiply(const Matrix& a, const Matrix& b, const Matrix& c, float alpha, float beta) {
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, kN, kN, kN, &alpha, a.device, kN, b.device, kN, &beta, c.device,
                 kN));
}

// In every mode of capture; each launch with other inputs, scalars as they were.
void products(cudaStreamCaptureMode mode) {
  Matrix a, b, c, d;
  for (Matrix* each : {&a, &b, &c, &d}) each->fill(1);
  begin(mode);
  multiply(a, b, c, 2, 0);  // the handle's first call on this stream, maybe
  multiply(c, b, d, 1, 1);
  const cudaGraph_t graph = end();
  HOLDS(c, 1);  // nothing has run
  const cudaGraphExec_t exec = instantiate(graph);
  OK(cudaGraphDestroy(graph));
  float sum = 1;
  for (int i = 1; i <= 3; ++i) {
    a.fill(static_cast<float>(i));
    launch(exec);
    HOLDS(c, 2.0f * i * kN);
    sum += 2.0f * i * kN * kN;
    HOLDS(d, sum);
  }
  OK(cudaGraphExecDestroy(exec));
}

// Scalars that lie on the device are read at each launch; answers are written there.
void device_scalars() {
  Matrix x, y;
  x.fill(1);
  y.fill(0);
  float *scalars, host[2];
  OK(cudaMalloc(&scalars, sizeof host));
  OK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  begin();
  OK(cublasSaxpy(handle, kN * kN, scalars, x.device, 1, y.device, 1));
  OK(cublasSasum(handle, kN * kN, y.device, 1, scalars + 1));
  const cudaGraph_t graph = end();
  OK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  const cudaGraphExec_t exec = instantiate(graph);
  float sum = 0;
  for (int i = 1; i <= 3; ++i) {
    host[0] = static_cast<float>(i);
    OK(cudaMemcpy(scalars, host, sizeof(float), cudaMemcpyHostToDevice));
    launch(exec);
    sum += i;
    HOLDS(y, sum);
    OK(cudaMemcpy(host, scalars, sizeof host, cudaMemcpyDeviceToHost));
    IS(std::lround(host[1]), std::lround(sum * kN * kN));
  }
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaFree(scalars));
}

// An answer to the host would have to wait, which no capture survives.
void host_answers() {
  Matrix x;
  float answer;
  begin();
  IS(cublasSasum(handle, kN, x.device, 1, &answer), CUBLAS_STATUS_NOT_SUPPORTED);
  cudaGraph_t graph;
  IS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  (void)cudaGetLastError();
  x.fill(2);
  OK(cublasSasum(handle, kN, x.device, 1, &answer));
  IS(std::lround(answer), 2 * kN);
}

// What a call makes no sense of breaks no capture.
void bad_arguments() {
  Matrix a, b, c;
  a.fill(1), b.fill(1), c.fill(0);
  const float one = 1;
  begin();
  IS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, -1, kN, kN, &one, a.device, kN, b.device, kN, &one, c.device, kN),
     CUBLAS_STATUS_INVALID_VALUE);
  multiply(a, b, c, 1, 0);
  const cudaGraph_t graph = end();
  const cudaGraphExec_t exec = instantiate(graph);
  launch(exec);
  HOLDS(c, kN);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

// What programs see of such nodes, clones, children, updates; and graphs that outlive the handle.
void nodes() {
  Matrix a, b, c, d;
  a.fill(1), b.fill(1), c.fill(0), d.fill(0);
  cublasHandle_t own, before = handle;
  OK(cublasCreate(&own));
  OK(cublasSetStream(own, stream));
  handle = own;
  begin();
  multiply(a, b, c, 1, 0);
  const cudaGraph_t graph = end();
  begin();
  multiply(a, b, d, 3, 0);
  const cudaGraph_t other = end();
  OK(cublasDestroy(own));
  handle = before;

  size_t count = 1;
  cudaGraphNode_t node;
  OK(cudaGraphGetNodes(graph, nullptr, &count));
  if (count == 0) expect(0, 1, "nodes", __LINE__);
  count = 1;
  OK(cudaGraphGetRootNodes(graph, &node, &count));
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(node, &type));
  if (!native) {  // NVIDIA's library may allocate in a node of its own
    cudaKernelNodeParams parameters;
    IS(type, cudaGraphNodeTypeKernel);
    IS(cudaGraphKernelNodeGetParams(node, &parameters), cudaErrorInvalidDeviceFunction);
    (void)cudaGetLastError();
  }

  cudaGraph_t clone, parent;
  OK(cudaGraphClone(&clone, graph));
  OK(cudaGraphCreate(&parent, 0));
  cudaGraphNode_t first;
  OK(cudaGraphAddChildGraphNode(&first, parent, nullptr, 0, clone));
  OK(cudaGraphDestroy(clone));
  const cudaGraphExec_t nested = instantiate(parent), exec = instantiate(graph);
  launch(nested);
  HOLDS(c, kN);
  HOLDS(d, 0);
  cudaGraphExecUpdateResultInfo info;
  OK(cudaGraphExecUpdate(exec, other, &info));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphDestroy(other));
  OK(cudaGraphDestroy(parent));
  a.fill(2);
  launch(exec);
  HOLDS(d, 3 * 2 * kN);
  HOLDS(c, kN);
  launch(nested);
  HOLDS(c, 2 * kN);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphExecDestroy(nested));
}

// A branch by an event, with the handle on another stream.
void branches() {
  Matrix a, b, c, d;
  a.fill(1), b.fill(2), c.fill(0), d.fill(0);
  cudaStream_t side;
  cudaEvent_t fork, join;
  OK(cudaStreamCreate(&side));
  OK(cudaEventCreate(&fork));
  OK(cudaEventCreate(&join));
  begin();
  OK(cudaEventRecord(fork, stream));
  OK(cudaStreamWaitEvent(side, fork, 0));
  multiply(a, b, c, 1, 0);
  OK(cublasSetStream(handle, side));
  multiply(b, b, d, 1, 0);
  OK(cudaEventRecord(join, side));
  OK(cublasSetStream(handle, stream));
  OK(cudaStreamWaitEvent(stream, join, 0));
  multiply(c, d, a, 1, 0);
  const cudaGraph_t graph = end();
  const cudaGraphExec_t exec = instantiate(graph);
  launch(exec);
  HOLDS(c, 2 * kN);
  HOLDS(d, 4 * kN);
  HOLDS(a, 8.0f * kN * kN * kN);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaEventDestroy(fork));
  OK(cudaEventDestroy(join));
  OK(cudaStreamDestroy(side));
}

// Each launch draws what comes next, beside what the program draws in between; the graph outlives the generator.
void random_numbers() {
  Matrix a;
  a.fill(0);
  curandGenerator_t generator;
  OK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
  OK(curandSetStream(generator, stream));
  begin();
  OK(curandGenerateUniform(generator, a.device, kN * kN));
  const cudaGraph_t graph = end();
  HOLDS(a, 0);
  const cudaGraphExec_t exec = instantiate(graph);
  std::vector<std::vector<float>> drawn;
  for (int i = 0; i < 2; ++i) {
    launch(exec);
    drawn.push_back(a.fetch());
    OK(curandGenerateUniform(generator, a.device, kN * kN));
    OK(cudaStreamSynchronize(stream));
    drawn.push_back(a.fetch());
  }
  OK(curandDestroyGenerator(generator));
  launch(exec);
  drawn.push_back(a.fetch());
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  // The same five in a row, without a graph.
  OK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
  for (const auto& each : drawn) {
    OK(curandGenerateUniform(generator, a.device, kN * kN));
    IS(a.fetch() == each, true);
  }
  OK(curandDestroyGenerator(generator));
}

}  // namespace

int main(int argc, char** argv) {
  native = argc > 1 && std::strcmp(argv[1], "native") == 0;
  OK(cudaStreamCreate(&stream));
  OK(cublasCreate(&handle));
  OK(cublasSetStream(handle, stream));
  products(cudaStreamCaptureModeGlobal);
  products(cudaStreamCaptureModeThreadLocal);
  products(cudaStreamCaptureModeRelaxed);
  device_scalars();
  if (!native) host_answers();
  bad_arguments();
  nodes();
  branches();
  if (!native) random_numbers();
  OK(cublasDestroy(handle));
  OK(cudaStreamDestroy(stream));
  std::printf("PASS\n");
  return 0;
}
