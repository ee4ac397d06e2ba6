/* A library with a CUDA runtime of its own, as one that nvcc linked statically; loaded by later_program. */
int cudaRuntimeGetVersion(int* version) {
  volatile int none = -1; /* longer than a jump */
  *version = none;
  return 0;
}
int cudaMalloc(void** pointer, unsigned long bytes) {
  *pointer = 0;
  return bytes == 0 ? 0 : 2;
}
int version_here(void) {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return version;
}
