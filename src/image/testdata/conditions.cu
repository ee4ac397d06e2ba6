// A kernel that sets a condition of a graph, to be linked with the device runtime.
extern "C" __global__ void decide(cudaGraphConditionalHandle handle, const unsigned* value) {
  cudaGraphSetConditional(handle, *value);
}
