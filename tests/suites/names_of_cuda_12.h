// What CUDA 13 took out of its headers and programs written for CUDA 12 and earlier still call. Included ahead of a
// program (nvcc -include) that does not build without it; the table says so.
#pragma once
#include <cuda_runtime.h>

#define cudaThreadSynchronize cudaDeviceSynchronize
#define cudaThreadExit cudaDeviceReset
