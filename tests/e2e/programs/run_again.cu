// Work that is right only if a worker that goes on with it begins with the memory that the one before began with.
// Whatever happens to workers, it prints what it prints undisturbed. Argument: which.
//
// reductions: kernels add to counts that they never read by themselves (red.add), one behind the other.
// overwritten: numbers come from pinned memory that is overwritten as soon as the event behind their copy is reached.
// full_log: a kernel has more launches behind it than the ring has room for.
// full_bulk: a kernel has more copies from pageable memory behind it than the ring has room for.
// one_copy: 100 MiB to the device and back in one call each, between kernels that update them in place.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "numbers.h"

constexpr int kThreads = 256, kBlocks = 16, kNumbers = kThreads * kBlocks;
constexpr unsigned kCounts = 64;

__global__ void tally(unsigned* counts, unsigned turns) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned turn = 0; turn < turns; ++turn)
    asm volatile("red.global.add.u32 [%0], %1;" ::"l"(counts + (i + turn) % kCounts), "r"(i % 7 + 1) : "memory");
}

__global__ void add(unsigned* sums, const unsigned* numbers, unsigned turns) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned turn = 0; turn < turns; ++turn) sums[i] = sums[i] * 3 + numbers[i] + turn;
}

__global__ void update(unsigned* numbers, unsigned count, unsigned value) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    numbers[i] = numbers[i] * 3 + value;
}

void add_on_host(Numbers& sums, const Numbers& numbers, unsigned turns) {
  for (size_t i = 0; i < sums.size(); ++i) {
    for (unsigned turn = 0; turn < turns; ++turn) sums[i] = sums[i] * 3 + numbers[i] + turn;
  }
}

int told(const unsigned* device, const Numbers& wanted) {
  std::printf("PASS: %u\n", right_sum(device, wanted, "numbers"));
  return 0;
}

int reductions() {
  constexpr unsigned kLaunches = 20, kTurns = 2 * kCounts;
  Numbers counts(kCounts);
  for (unsigned i = 0; i < kCounts; ++i) counts[i] = 1000 + i;
  unsigned* const device = on_device(counts);
  for (unsigned n = 0; n < kLaunches; ++n) tally<<<kBlocks, kThreads>>>(device, kTurns);
  for (unsigned i = 0; i < kNumbers; ++i) {
    for (unsigned& count : counts) count += (i % 7 + 1) * kLaunches * kTurns / kCounts;
  }
  return told(device, counts);
}

int overwritten() {
  constexpr unsigned kSteps = 60, kTurns = 20;
  cudaStream_t stream;
  cudaEvent_t copied;
  unsigned* pinned = nullptr;
  Numbers sums(kNumbers, 1), numbers(kNumbers);
  unsigned *const device_sums = on_device(sums), *const device_numbers = on_device(numbers);
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
  CHECK(cudaMallocHost(&pinned, kNumbers * sizeof(unsigned)));
  for (unsigned step = 0; step < kSteps; ++step) {
    for (unsigned i = 0; i < kNumbers; ++i) pinned[i] = numbers[i] = step * 1000 + i;
    CHECK(cudaMemcpyAsync(device_numbers, pinned, kNumbers * sizeof(unsigned), cudaMemcpyHostToDevice, stream));
    CHECK(cudaEventRecord(copied, stream));
    add<<<kBlocks, kThreads, 0, stream>>>(device_sums, device_numbers, kTurns);
    CHECK(cudaEventSynchronize(copied));
    std::memset(pinned, 0xff, kNumbers * sizeof(unsigned));
    add_on_host(sums, numbers, kTurns);
  }
  CHECK(cudaDeviceSynchronize());
  return told(device_sums, sums);
}

// A long kernel first, so that what follows waits in the ring.
int full_log() {
  constexpr unsigned kLaunches = 3000, kTurns = 400;
  Numbers sums(kNumbers, 1), numbers(kNumbers, 5), small(32, 2);
  unsigned *const device_sums = on_device(sums), *const device_numbers = on_device(numbers);
  unsigned* const device_small = on_device(small);
  add<<<kBlocks, kThreads>>>(device_sums, device_numbers, kTurns);
  for (unsigned n = 0; n < kLaunches; ++n) {
    update<<<1, 32>>>(device_small, 32, n);
    for (unsigned& number : small) number = number * 3 + n;
  }
  add<<<kBlocks, kThreads>>>(device_sums, device_numbers, kTurns);
  for (int n = 0; n < 2; ++n) add_on_host(sums, numbers, kTurns);
  sums.insert(sums.end(), small.begin(), small.end());
  unsigned* all = nullptr;
  CHECK(cudaMalloc(&all, sums.size() * sizeof(unsigned)));
  CHECK(cudaMemcpy(all, device_sums, kNumbers * sizeof(unsigned), cudaMemcpyDeviceToDevice));
  CHECK(cudaMemcpy(all + kNumbers, device_small, 32 * sizeof(unsigned), cudaMemcpyDeviceToDevice));
  return told(all, sums);
}

int full_bulk() {
  constexpr unsigned kCopies = 100, kTurns = 20;
  Numbers sums(kNumbers, 1), numbers(kNumbers);
  unsigned *const device_sums = on_device(sums), *const device_numbers = on_device(numbers);
  for (unsigned n = 0; n < kCopies; ++n) {
    for (unsigned i = 0; i < kNumbers; ++i) numbers[i] = n * 1000 + i;
    CHECK(cudaMemcpyAsync(device_numbers, numbers.data(), kNumbers * sizeof(unsigned), cudaMemcpyHostToDevice));
    add<<<kBlocks, kThreads>>>(device_sums, device_numbers, kTurns);
    add_on_host(sums, numbers, kTurns);
  }
  return told(device_sums, sums);
}

int one_copy() {
  constexpr unsigned kLarge = 25 << 20, kUpdates = 3;
  Numbers numbers(kLarge);
  for (unsigned i = 0; i < kLarge; ++i) numbers[i] = i;
  unsigned* const device = on_device(numbers);
  for (unsigned n = 0; n < kUpdates; ++n) update<<<64, kThreads>>>(device, kLarge, n);
  for (unsigned& number : numbers) {
    for (unsigned n = 0; n < kUpdates; ++n) number = number * 3 + n;
  }
  return told(device, numbers);
}

int main(int, char** arguments) {
  const auto is = [&](const char* name) { return std::strcmp(arguments[1], name) == 0; };
  if (is("reductions")) return reductions();
  if (is("overwritten")) return overwritten();
  if (is("full_log")) return full_log();
  if (is("full_bulk")) return full_bulk();
  return is("one_copy") ? one_copy() : 2;
}
