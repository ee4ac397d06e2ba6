#pragma once

// Numbers that a program computes on a device and on the host, and compares.

#include <vector>

#include "check.h"

using Numbers = std::vector<unsigned>;

inline unsigned* on_device(const Numbers& numbers) {
  unsigned* device = nullptr;
  CHECK(cudaMalloc(&device, numbers.size() * sizeof(unsigned)));
  CHECK(cudaMemcpy(device, numbers.data(), numbers.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());  // other streams do not wait for what cudaMemcpy has still under way
  return device;
}

// A sum of the numbers on the device. Ends the program where they are not the wanted ones.
inline unsigned right_sum(const unsigned* device, const Numbers& wanted, const char* name) {
  Numbers numbers(wanted.size());
  CHECK(cudaMemcpy(numbers.data(), device, numbers.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  unsigned sum = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    sum = sum * 31 + numbers[i];
    if (numbers[i] == wanted[i]) continue;
    std::printf("%s: number %zu of %zu is %u, not %u\n", name, i, numbers.size(), numbers[i], wanted[i]);
    std::exit(1);
  }
  return sum;
}
