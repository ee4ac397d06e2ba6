// What heddle costs a program, seen from inside one: run it with `heddle run -- tenant_bench` (scripts/bench.sh does).
// Each figure is told against a bare one of the same run: copies against memcpy, round trips against a futex ping-pong
// between two processes.

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "baseline.h"

namespace {

using heddle::bench::seconds_now;

__global__ void nothing(int*) {}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s (%d)\n", what, cudaGetErrorString(error), static_cast<int>(error));
  std::exit(1);
}

double ping_pong_s = 0;  // set in main, before this process has threads

constexpr size_t kCopyBytes = 64 << 20;
// Fewer launches than the ring holds, so that only the enqueueing is timed.
constexpr int kLaunches = 8192;

int* device_word() {
  static int* word = [] {
    int* made = nullptr;
    check(cudaMalloc(reinterpret_cast<void**>(&made), 4096), "cudaMalloc");
    nothing<<<1, 1>>>(made);
    check(cudaDeviceSynchronize(), "first launch");
    return made;
  }();
  return word;
}

// Appending launches to the ring. Goal: 2 million a second from one thread.
void enqueue_launch(benchmark::State& state) {
  int* word = device_word();
  for (auto _ : state) {
    const double begin = seconds_now();
    for (int i = 0; i < kLaunches; ++i) nothing<<<1, 1>>>(word);
    state.SetIterationTime(seconds_now() - begin);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  state.SetItemsProcessed(state.iterations() * kLaunches);
}

// An event recorded and waited for: the program to its worker and back. Goal: 2 ping-pongs at most.
void synchronize_round_trip(benchmark::State& state) {
  device_word();
  cudaEvent_t event;
  check(cudaEventCreate(&event), "cudaEventCreate");
  std::vector<double> times;
  for (auto _ : state) {
    const double begin = seconds_now();
    check(cudaEventRecord(event), "cudaEventRecord");
    check(cudaEventSynchronize(event), "cudaEventSynchronize");
    const double one = seconds_now() - begin;
    times.push_back(one);
    state.SetIterationTime(one);
  }
  state.counters["ping_pongs"] = heddle::bench::median(times) / ping_pong_s;
  cudaEventDestroy(event);
}

// The same with an empty kernel instead of a bare event.
void launch_round_trip(benchmark::State& state) {
  int* word = device_word();
  std::vector<double> times;
  for (auto _ : state) {
    const double begin = seconds_now();
    nothing<<<1, 1>>>(word);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const double one = seconds_now() - begin;
    times.push_back(one);
    state.SetIterationTime(one);
  }
  state.counters["ping_pongs"] = heddle::bench::median(times) / ping_pong_s;
}

constexpr size_t kLoopBytes = 4 << 20;

double timed_launch(int* word) {
  const double begin = seconds_now();
  nothing<<<1, 1>>>(word);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return seconds_now() - begin;
}

// A turn of a program that allocates, launches, waits and frees, against one of the same moment that only launches and
// waits. Of the turn, the two memory calls alone. Goals: a ratio of 2, and 2 us for each call.
void allocate_launch_free(benchmark::State& state) {
  std::vector<double> ratios, calls;
  for (auto _ : state) {
    const double begin = seconds_now();
    int* buffer = nullptr;
    check(cudaMalloc(reinterpret_cast<void**>(&buffer), kLoopBytes), "cudaMalloc");
    const double allocated = seconds_now();
    const double launch = timed_launch(buffer);
    const double freeing = seconds_now();
    check(cudaFree(buffer), "cudaFree");
    const double end = seconds_now();
    int* word = device_word();
    timed_launch(word);
    ratios.push_back((end - begin) / timed_launch(word));
    calls.push_back(allocated - begin + end - freeing);
    benchmark::DoNotOptimize(launch);
    state.SetIterationTime(end - begin);
  }
  state.counters["of_launch"] = heddle::bench::median(ratios);
  state.counters["memory_calls_us"] = heddle::bench::median(calls) * 1e6;
}

// The same where nothing else is allocated, so that the task has nothing left at the end of each turn.
void allocate_launch_free_alone(benchmark::State& state) {
  std::vector<double> times;
  for (auto _ : state) {
    const double begin = seconds_now();
    int* buffer = nullptr;
    check(cudaMalloc(reinterpret_cast<void**>(&buffer), kLoopBytes), "cudaMalloc");
    timed_launch(buffer);
    check(cudaFree(buffer), "cudaFree");
    times.push_back(seconds_now() - begin);
    state.SetIterationTime(times.back());
  }
  state.counters["ping_pongs"] = heddle::bench::median(times) / ping_pong_s;
}

double measure_memcpy(std::vector<char>& to, const std::vector<char>& from) {
  const double begin = seconds_now();
  std::memcpy(to.data(), from.data(), from.size());
  benchmark::DoNotOptimize(to.data());
  return seconds_now() - begin;
}

// Each copy beside a bare one of the same moment: what memory gives changes with the machine's other guests.
void copy(benchmark::State& state, cudaMemcpyKind kind) {
  std::vector<char> host(kCopyBytes, 1);
  char* device = nullptr;
  check(cudaMalloc(reinterpret_cast<void**>(&device), kCopyBytes), "cudaMalloc");
  void* to = kind == cudaMemcpyHostToDevice ? device : host.data();
  const void* from = kind == cudaMemcpyHostToDevice ? host.data() : device;
  check(cudaMemset(device, 1, kCopyBytes), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::vector<double> ratios;
  std::vector<char> other(kCopyBytes, 2);
  for (auto _ : state) {
    const double bare = measure_memcpy(other, host);
    const double begin = seconds_now();
    check(cudaMemcpy(to, from, kCopyBytes, kind), "cudaMemcpy");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const double one = seconds_now() - begin;
    ratios.push_back(bare / one);
    state.SetIterationTime(one);
  }
  state.SetBytesProcessed(static_cast<int64_t>(kCopyBytes * state.iterations()));
  state.counters["of_memcpy"] = heddle::bench::median(ratios);
  check(cudaFree(device), "cudaFree");
}

void staged_copy_to_device(benchmark::State& state) {
  copy(state, cudaMemcpyHostToDevice);
}
void staged_copy_to_host(benchmark::State& state) {
  copy(state, cudaMemcpyDeviceToHost);
}

BENCHMARK(allocate_launch_free_alone)->UseManualTime();  // before anything stays allocated
BENCHMARK(allocate_launch_free)->UseManualTime();
BENCHMARK(enqueue_launch)->UseManualTime();
BENCHMARK(synchronize_round_trip)->UseManualTime();
BENCHMARK(launch_round_trip)->UseManualTime();
BENCHMARK(staged_copy_to_device)->UseManualTime();
BENCHMARK(staged_copy_to_host)->UseManualTime();

}  // namespace

int main(int argc, char** argv) {
  {
    heddle::bench::PingPong ping_pong;
    ping_pong.measure(1000);
    ping_pong_s = ping_pong.measure(20000);
  }
  std::printf("bare: futex ping-pong between two processes %.2f us\n", ping_pong_s * 1e6);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
