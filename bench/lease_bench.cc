// What exclusive dispatch costs a program that is alone on its device: the same program under `fs` and under `open`,
// by turns. Goal: less than 2 %. One queues launches on one stream, one waits for each.

#include <benchmark/benchmark.h>

#include <cstdio>

#include "baseline.h"
#include "node.h"

namespace {

using heddle::bench::median;
using heddle::bench::seconds_now;
using heddle::e2e::Arguments;
using heddle::e2e::Finished;
using heddle::e2e::Json;
using heddle::e2e::Node;

std::string config(const std::string& dispatch, const std::string& pace) {
  return "[daemon]\nwarm_workers = 1\n[dispatch]\npolicy = '" + dispatch +
         "'\n[[device]]\npreset = 'P100'\ncount = 1\nmemory = '256M'\ncopy_slowdown = 0\nslowdown = " + pace + "\n";
}

Finished run(Node& node, const Arguments& command) {
  Finished finished = node.run(command);
  if (finished.status == 0) return finished;
  std::fprintf(stderr, "%s%s%s", finished.out.c_str(), finished.err.c_str(), node.log().c_str());
  std::exit(1);
}

// Seconds that a program takes which queues so many launches.
double queue(Node& node) {
  const double begin = seconds_now();
  run(node, {heddle::e2e::workload("vecadd"), "--size", "16384", "--streams", "1", "--iterations", "10000", "--check",
             "sample"});
  return seconds_now() - begin;
}

// Seconds of a launch that is waited for, as the program sees it.
double round_trip(Node& node) {
  const Finished finished = run(node, {HEDDLE_TENANT_BENCH, "--benchmark_filter=^launch_round_trip",
                                       "--benchmark_min_time=0.2", "--benchmark_format=json"});
  const Json result = Json::parse(finished.out.substr(finished.out.find("{\n")));
  return result["benchmarks"][0]["real_time"].get<double>() * 1e-9;
}

void alone(benchmark::State& state, double (*measure)(Node&), const char* pace) {
  Node open(config("open", pace)), lent(config("fs", pace));
  if (!open.ready() || !lent.ready()) return state.SkipWithError("heddled did not start");
  std::vector<double> ratios;
  for (auto _ : state) {
    const bool open_first = ratios.size() % 2 == 0;
    const double first = measure(open_first ? open : lent), second = measure(open_first ? lent : open);
    ratios.push_back(open_first ? second / first : first / second);
    state.SetIterationTime(open_first ? second : first);
  }
  state.counters["fs_over_open"] = median(ratios);
}

BENCHMARK_CAPTURE(alone, queue_unpaced, queue, "0")->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(10);
BENCHMARK_CAPTURE(alone, queue_paced, queue, "100")->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(10);
BENCHMARK_CAPTURE(alone, round_trip, round_trip, "0")->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(12);

}  // namespace

int main(int argc, char** argv) {
  if (heddle::e2e::workload("vecadd").empty()) return std::printf("the workloads were not built\n"), 0;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
