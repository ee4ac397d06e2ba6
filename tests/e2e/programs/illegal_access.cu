// Uses the device rightly, prints "ready", waits for the file "go" in the directory that is named, and then does wrong:
// a kernel that writes where nothing is, or, with a second argument, one that does not end. Prints what it hears of
// that.

#include <unistd.h>

#include <cstdio>
#include <string>

__global__ void store(int* where, int value) {
  *where = value;
}

__global__ void spin(volatile int* until) {
  while (*until == 0) {
  }
}

int main(int count, char** arguments) {
  const std::string go = std::string(arguments[1]) + "/go";
  int* word;
  cudaMalloc(&word, sizeof *word);
  store<<<1, 1>>>(word, 0);
  std::puts(cudaGetErrorName(cudaDeviceSynchronize()));
  std::puts("ready");
  std::fflush(stdout);
  while (::access(go.c_str(), F_OK) != 0) ::usleep(1000);
  if (count > 2) {
    spin<<<1, 1>>>(word);
  } else {
    store<<<1, 1>>>(reinterpret_cast<int*>(uintptr_t{16}), 1);
  }
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%d %s\n", error, cudaGetErrorName(error));
  return error == cudaSuccess ? 0 : 1;
}
