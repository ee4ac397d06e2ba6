#pragma once

// Ends the program at the first CUDA call that fails, and prints which, with the error's number and name.

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                            \
  do {                                                                                         \
    const cudaError_t error = (call);                                                          \
    if (error != cudaSuccess) {                                                                \
      std::printf("%s: %d %s (line %d)\n", #call, error, cudaGetErrorString(error), __LINE__); \
      std::exit(1);                                                                            \
    }                                                                                          \
  } while (false)
