// How fast one core interprets kernels, by class of work, against the same work as native loops (g++ -O3 -march=native)
// in the same run: warp instructions a second, and how many times as long as the native loop it takes.

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "device/software/simt/testing/machine.h"
#include "native_loops.h"

namespace heddle::bench {
namespace {

using software::Block;

constexpr int kElements = 1 << 20;
constexpr uint32_t kThreads = 256;

// Seconds that this thread ran: on a machine that does other work too, what that takes is not counted.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::string module_text() {
  std::ifstream file(HEDDLE_INTERPRETER_PTX);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The whole launch on one core; how many warp instructions it had.
uint64_t run(Block& block, uint32_t blocks) {
  uint64_t before = block.counters().warp_instructions;
  for (uint32_t i = 0; i < blocks; ++i) {
    block.start({i, 0, 0}, 0);
    while (block.run(1'000'000) == Block::Progress::kRunning) {
    }
  }
  if (block.fault().cuda_error) std::abort();
  return block.counters().warp_instructions - before;
}

void measure(benchmark::State& state, const char* name, Loop native, uint32_t blocks) {
  software::Machine machine;
  machine.load(module_text());
  std::vector<float> in(kElements);
  for (int i = 0; i < kElements; ++i) in[i] = static_cast<float>(i % 1009) / 1009;
  struct {
    uint64_t in, out;
    int32_t n;
  } parameters = {machine.put(in), machine.allocate(4 * kElements), kElements};
  auto kernel = machine.compile(name);
  if (!kernel) return state.SkipWithError(kernel.error().text.c_str());
  software::LaunchShape shape;
  shape.grid = {blocks, 1, 1};
  shape.block = {kThreads, 1, 1};
  shape.parameters = std::as_bytes(std::span(&parameters, 1));
  auto block = Block::create(**kernel, shape, machine.memory(), nullptr);
  if (!block) return state.SkipWithError(block.error().text.c_str());
  std::vector<float> out(kElements);
  double interpreted = 1e9, natively = 1e9;  // the best of all rounds
  uint64_t instructions = 0;
  for (auto _ : state) {
    double begin = now();
    instructions = run(**block, blocks);
    double between = now();
    native(in.data(), out.data(), kElements);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
    natively = std::min(natively, now() - between);
    interpreted = std::min(interpreted, between - begin);
  }
  state.counters["warp_instructions/s"] = static_cast<double>(instructions) / interpreted;
  state.counters["times_native"] = interpreted / natively;
}

constexpr uint32_t kBlocks = kElements / kThreads;
BENCHMARK_CAPTURE(measure, dense, "dense", native_dense, kBlocks)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(measure, stream, "stream", native_stream, kBlocks)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(measure, barriers, "barriers", native_barriers, kBlocks)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(measure, shuffles, "shuffles", native_shuffles, kBlocks)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(measure, divergent, "divergent", native_divergent, kBlocks)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(measure, atomics, "atomics", native_atomics, kBlocks)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(measure, tiles, "tiles", native_tiles, 256)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace heddle::bench
