// Grid-wide synchronisation of cooperative groups, twice in one launch and in two launches after each other: every
// block sees what all others wrote before it.

#include <cooperative_groups.h>

#include <cstdio>

namespace {

constexpr int kBlocks = 12, kThreads = 64, kRounds = 5;

__global__ void rounds(int* sums, int* numbers) {
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  const int me = static_cast<int>(grid.thread_rank());
  for (int round = 0; round < kRounds; ++round) {
    numbers[me] = me + round;
    grid.sync();
    int sum = 0;
    for (int i = 0; i < static_cast<int>(grid.size()); ++i) sum += numbers[i];
    sums[me] += sum;
    grid.sync();
  }
}

__global__ void tell_validity(int* valid) {
  *valid = cooperative_groups::this_grid().is_valid();
}

bool all() {
  constexpr int kAll = kBlocks * kThreads;
  int *sums = nullptr, *numbers = nullptr, host[kAll];
  if (cudaMalloc(&sums, sizeof(host)) != cudaSuccess || cudaMalloc(&numbers, sizeof(host)) != cudaSuccess) return false;
  cudaMemset(sums, 0, sizeof(host));
  void* arguments[] = {&sums, &numbers};
  for (int launch = 0; launch < 2; ++launch) {
    if (cudaLaunchCooperativeKernel(reinterpret_cast<void*>(rounds), dim3(kBlocks), dim3(kThreads), arguments, 0,
                                    nullptr))
      return false;
  }
  if (cudaMemcpy(host, sums, sizeof(host), cudaMemcpyDeviceToHost) != cudaSuccess) return false;
  int expected = 0;
  for (int round = 0; round < kRounds; ++round) expected += kAll * (kAll - 1) / 2 + kAll * round;
  for (const int sum : host) {
    if (sum != 2 * expected) return std::printf("%d, not %d\n", sum, 2 * expected), false;
  }
  cudaFree(sums);
  cudaFree(numbers);
  return true;
}

// Whether an ordinary launch has such a group.
int ordinary() {
  int* valid = nullptr;
  int host = -1;
  cudaMalloc(&valid, sizeof(host));
  tell_validity<<<1, 1>>>(valid);
  cudaMemcpy(&host, valid, sizeof(host), cudaMemcpyDeviceToHost);
  return host;
}

}  // namespace

int main(int count, char**) {
  if (count > 1) return std::printf("an ordinary launch: %d\n", ordinary()), 0;
  const bool right = all();
  std::puts(right ? "PASS" : "FAIL");
  return right ? 0 : 1;
}
