// Steps of programs that have run for a while, each bound by one thing, for comparing a step under heddle with the same
// step natively. One line a case: its name and the microseconds that a step takes in the median, of all steps behind a
// first tenth. Every result is checked. Usage: steady [--rounds N] [--seconds S] [CASE...]; steady --calibrate
//
//   empty       a wait for a stream that has nothing to do
//   launch      a launch, of 100,000 that are waited for together (their mean)
//   wait-US     a kernel of US microseconds and a wait for its stream, for 1, 10, 100 and 1000
//   update-US   the same, of a kernel that updates 256 KiB in place: it cannot simply be run again
//   event-US    the same, with the time between two events asked for
//   host-US     a kernel of 10 microseconds, a wait, and as long on the host as the case says before the next
//   read        4 bytes computed and copied to pageable memory
//   queue       10 kernels of 10 microseconds, and a wait
//   managed     managed memory of 4 bytes allocated, written by a kernel, read by the host, and freed
//
// Kernels' work is a number of rounds, not a time: others that use the device make them take longer. --calibrate tells
// how many rounds a microsecond has on this device; they are the same natively and under heddle.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

#define CHECK(call)                                                                           \
  do {                                                                                        \
    if (cudaError_t error = (call); error != cudaSuccess) {                                   \
      std::fprintf(stderr, "steady: %s: %s (%d)\n", #call, cudaGetErrorString(error), error); \
      std::exit(1);                                                                           \
    }                                                                                         \
  } while (false)

using Clock = std::chrono::steady_clock;

constexpr unsigned kUpdated = 64 * 1024;

__device__ __host__ unsigned chain(unsigned value, unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) value = value * 1664525u + 1013904223u;
  return value;
}

__global__ void compute(unsigned* out, unsigned rounds) {
  *out = chain(threadIdx.x, rounds);
}

__global__ void update(unsigned* values, unsigned rounds) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  values[at] = chain(values[at], rounds);
}

double since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

struct Bench {
  double rounds_per_us = 500, seconds = 1;
  cudaStream_t stream{};
  unsigned *out = nullptr, *values = nullptr;
  bool right = true;

  unsigned rounds(double us) const { return static_cast<unsigned>(us * rounds_per_us); }

  // The median of the steps that `seconds` have time for.
  template <class Step>
  double median_of(Step&& step) const {
    std::vector<double> times;
    const auto begin = Clock::now();
    while (since(begin) < seconds * 1e6 || times.size() < 20) {
      const auto at = Clock::now();
      step();
      times.push_back(since(at));
    }
    times.erase(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 10));
    std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
  }

  void expect(unsigned rounds) {
    unsigned found = 0;
    CHECK(cudaMemcpy(&found, out, sizeof found, cudaMemcpyDeviceToHost));
    right = right && found == chain(0, rounds);
  }

  double empty() const {
    return median_of([&] { CHECK(cudaStreamSynchronize(stream)); });
  }

  double launch() {
    constexpr unsigned kTimes = 100'000;
    const auto begin = Clock::now();
    for (unsigned i = 0; i < kTimes; ++i) compute<<<1, 1, 0, stream>>>(out, 1);
    CHECK(cudaStreamSynchronize(stream));
    const double took = since(begin) / kTimes;
    expect(1);
    return took;
  }

  double wait(double us) {
    const double took = median_of([&] {
      compute<<<1, 1, 0, stream>>>(out, rounds(us));
      CHECK(cudaStreamSynchronize(stream));
    });
    expect(rounds(us));
    return took;
  }

  double updated(double us) {
    unsigned steps = 0;
    CHECK(cudaMemset(values, 0, kUpdated * sizeof *values));
    const double took = median_of([&] {
      update<<<kUpdated / 256, 256, 0, stream>>>(values, rounds(us));
      CHECK(cudaStreamSynchronize(stream));
      ++steps;
    });
    unsigned expected = 0, found = 0;
    for (unsigned i = 0; i < steps; ++i) expected = chain(expected, rounds(us));
    CHECK(cudaMemcpy(&found, values + kUpdated - 1, sizeof found, cudaMemcpyDeviceToHost));
    right = right && found == expected;
    return took;
  }

  double event(double us) {
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    const double took = median_of([&] {
      CHECK(cudaEventRecord(begin, stream));
      compute<<<1, 1, 0, stream>>>(out, rounds(us));
      CHECK(cudaEventRecord(end, stream));
      CHECK(cudaEventSynchronize(end));
      float milliseconds = -1;
      CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
      right = right && milliseconds >= 0;
    });
    expect(rounds(us));
    return took;
  }

  double host(double us) {
    const double took = median_of([&] {
      compute<<<1, 1, 0, stream>>>(out, rounds(10));
      CHECK(cudaStreamSynchronize(stream));
      for (const auto at = Clock::now(); since(at) < us;) continue;
    });
    expect(rounds(10));
    return took;
  }

  double read() {
    unsigned i = 0;
    return median_of([&] {
      unsigned found = 0;
      compute<<<1, 1, 0, stream>>>(out, ++i);
      CHECK(cudaMemcpyAsync(&found, out, sizeof found, cudaMemcpyDeviceToHost, stream));
      CHECK(cudaStreamSynchronize(stream));
      right = right && (i % 64 != 0 || found == chain(0, i));
    });
  }

  double queue() {
    const double took = median_of([&] {
      for (int i = 0; i < 10; ++i) compute<<<1, 1, 0, stream>>>(out, rounds(10));
      CHECK(cudaStreamSynchronize(stream));
    });
    expect(rounds(10));
    return took;
  }

  double managed() {
    unsigned i = 0;
    return median_of([&] {
      unsigned* found = nullptr;
      CHECK(cudaMallocManaged(&found, sizeof *found));
      compute<<<1, 1, 0, stream>>>(found, ++i % 64);
      CHECK(cudaStreamSynchronize(stream));
      right = right && *found == chain(0, i % 64);
      CHECK(cudaFree(found));
    });
  }

  double run(const std::string& name) {
    const size_t dash = name.find('-');
    const std::string kind = name.substr(0, dash);
    const double us = dash == std::string::npos ? 0 : std::atof(name.c_str() + dash + 1);
    if (kind == "empty") return empty();
    if (kind == "launch") return launch();
    if (kind == "wait") return wait(us);
    if (kind == "update") return updated(us);
    if (kind == "event") return event(us);
    if (kind == "host") return host(us);
    if (kind == "read") return read();
    if (kind == "queue") return queue();
    if (kind == "managed") return managed();
    std::fprintf(stderr, "steady: no case %s\n", name.c_str());
    std::exit(64);
  }
};

double calibrate(Bench& bench) {
  constexpr unsigned kRounds = 1'000'000;
  bench.rounds_per_us = kRounds;
  bench.seconds = 0.5;
  return kRounds / bench.wait(1);
}

}  // namespace

int main(int argc, char** argv) {
  Bench bench;
  bool only_calibrate = false;
  std::vector<std::string> cases;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--calibrate") {
      only_calibrate = true;
    } else if (word == "--rounds" && i + 1 < argc) {
      bench.rounds_per_us = std::atof(argv[++i]);
    } else if (word == "--seconds" && i + 1 < argc) {
      bench.seconds = std::atof(argv[++i]);
    } else {
      cases.push_back(word);
    }
  }
  if (cases.empty())
    cases = {"empty",      "launch",   "wait-1",   "wait-10",   "wait-100", "wait-1000", "update-10",
             "update-100", "event-10", "host-100", "host-1000", "read",     "queue",     "managed"};
  CHECK(cudaStreamCreate(&bench.stream));
  CHECK(cudaMalloc(&bench.out, sizeof *bench.out));
  CHECK(cudaMalloc(&bench.values, kUpdated * sizeof *bench.values));
  CHECK(cudaMemset(bench.values, 0, kUpdated * sizeof *bench.values));
  if (only_calibrate) {
    std::printf("%.1f\n", calibrate(bench));
    return bench.right ? 0 : 2;
  }
  for (const std::string& name : cases) std::printf("%s %.2f\n", name.c_str(), bench.run(name));
  std::printf("steady: %s\n", bench.right ? "PASS" : "FAIL");
  return bench.right ? 0 : 2;
}
