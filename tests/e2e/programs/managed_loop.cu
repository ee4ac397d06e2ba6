// The same iterations on device memory, on managed memory and on pinned memory that kernels reach over the bus, by
// turns in one run: what managed memory costs where the host touches none of it, a word, or all of it.
//
//   managed_loop ITERATIONS MIB
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

// Reads and writes everything several times, as an iterative kernel does.
__global__ void step(unsigned* to, size_t words) {
  for (int round = 0; round < 4; ++round) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += size_t{gridDim.x} * blockDim.x) ++to[i];
  }
}

size_t words = 0;
bool failed = false;

void check(bool holds) {
  failed |= !holds;
}

void launch(unsigned* to) {
  step<<<264, 256>>>(to, words);
  check(cudaDeviceSynchronize() == cudaSuccess);
}

double seconds(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int iterations = argc > 1 ? std::atoi(argv[1]) : 20;
  words = (argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 16) << 18;
  const size_t bytes = words * sizeof(unsigned);
  unsigned *device = nullptr, *managed = nullptr, *pinned = nullptr;
  std::vector<unsigned> plain(words);
  check(cudaMalloc(&device, bytes) == cudaSuccess && cudaMallocManaged(&managed, bytes) == cudaSuccess &&
        cudaMallocHost(&pinned, bytes) == cudaSuccess);
  if (failed) return std::puts("FAIL"), 1;
  std::fill_n(managed, words, 0);
  std::fill_n(pinned, words, 0);
  check(cudaMemset(device, 0, bytes) == cudaSuccess);

  unsigned sink = 0;
  const auto word = [&](unsigned* memory) { memory[words / 2] += 1; };
  const auto all = [&](unsigned* memory) {
    for (size_t i = 0; i < words; ++i) ++memory[i];
  };
  const auto by_copy = [&](bool everything) {
    const size_t first = everything ? 0 : words / 2, count = everything ? bytes : sizeof(unsigned);
    check(cudaMemcpy(plain.data(), device + first, count, cudaMemcpyDefault) == cudaSuccess);
    if (everything) {
      all(plain.data());
    } else {
      ++plain[0];
    }
    check(cudaMemcpy(device + first, plain.data(), count, cudaMemcpyDefault) == cudaSuccess);
  };
  const struct {
    const char* touches;
    std::function<void()> on_device, on_managed, on_pinned;
  } cases[] = {
      {"nothing", [] {}, [] {}, [] {}},
      {"a word", [&] { by_copy(false); }, [&] { word(managed); }, [&] { word(pinned); }},
      {"all of it", [&] { by_copy(true); }, [&] { all(managed); }, [&] { all(pinned); }},
  };
  for (unsigned* memory : {device, managed, pinned}) launch(memory);
  for (const auto& each : cases) {
    std::vector<double> on_device, on_managed, on_pinned;
    for (int i = 0; i < iterations; ++i) {
      on_device.push_back(seconds([&] { each.on_device(), launch(device); }));
      on_managed.push_back(seconds([&] { each.on_managed(), launch(managed); }));
      on_pinned.push_back(seconds([&] { each.on_pinned(), launch(pinned); }));
    }
    std::printf("host touches %-9s: device memory with copies %8.3f ms, managed %5.2f times that, pinned %5.2f times\n",
                each.touches, 1e3 * median(on_device), median(on_managed) / median(on_device),
                median(on_pinned) / median(on_device));
  }
  check(managed[3] == pinned[3] && managed[words / 2] == pinned[words / 2] && managed[words - 1] == pinned[words - 1]);
  sink += plain[0];
  check(cudaFree(device) == cudaSuccess && cudaFree(managed) == cudaSuccess && cudaFreeHost(pinned) == cudaSuccess);
  std::printf("managed_loop: %s\n", failed ? "FAIL" : "PASS");
  return failed ? 1 : static_cast<int>(sink & 0);
}
