// What measuring costs a launch: in the worker's issuer, in its completions thread by the size of the batch, and of a
// launch that comes to an idle device. And what a look at a page costs heddled.

#include <benchmark/benchmark.h>

#include <vector>

#include "core/clock.h"
#include "worker/usage.h"

namespace heddle::worker {
namespace {

using protocol::RecordType;

struct Meter {
  Meter() : Meter(std::move(*protocol::ControlPage::create())) {}
  explicit Meter(std::pair<Fd, protocol::ControlPage> made)
      : reader(std::move(*protocol::ControlPage::attach(made.first))),
        meter(std::move(made.second), protocol::Usage{}) {}

  // Launches of 1 us in a row.
  std::vector<Done> batch(size_t size) {
    std::vector<Done> done;
    for (size_t i = 0; i < size; ++i) {
      const TimePoint began = time;
      time += std::chrono::microseconds(1);
      done.push_back({RecordType::kLaunch, 0, began, time, 0});
    }
    return done;
  }

  protocol::ControlPage reader;
  UsageMeter meter;
  TimePoint time = MonotonicClock().now();
};

void issue(benchmark::State& state) {
  Meter meter;
  uint64_t sequence = 0;
  for (auto _ : state) {
    meter.meter.seen(++sequence);
    meter.meter.hand_over(RecordType::kLaunch);
  }
}
BENCHMARK(issue);

// Time a launch.
void complete(benchmark::State& state) {
  Meter meter;
  const auto size = static_cast<size_t>(state.range(0));
  // One stays in flight: the device is never idle.
  meter.meter.hand_over(RecordType::kLaunch);
  auto batch = meter.batch(size);
  for (auto _ : state) {
    for (size_t i = 0; i < size; ++i) meter.meter.hand_over(RecordType::kLaunch);
    for (Done& done : batch) {
      done.began += std::chrono::microseconds(2 * size);
      done.ended += std::chrono::microseconds(2 * size);
    }
    meter.meter.count(batch);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(complete)->Arg(1)->Arg(8)->Arg(64);

// A program that waits for each launch: two clock readings, three pages.
void launch_and_wait(benchmark::State& state) {
  Meter meter;
  uint64_t sequence = 0;
  for (auto _ : state) {
    meter.meter.seen(++sequence);
    meter.meter.hand_over(RecordType::kLaunch);
    const TimePoint now = MonotonicClock().now();
    const Done done{RecordType::kLaunch, 0, now, now + std::chrono::nanoseconds(100), 0};
    meter.meter.count(std::span(&done, 1));
    meter.meter.end_burst_at(sequence);
  }
}
BENCHMARK(launch_and_wait);

void read_page(benchmark::State& state) {
  Meter meter;
  protocol::Usage usage;
  for (auto _ : state) benchmark::DoNotOptimize(meter.reader.read(usage));
}
BENCHMARK(read_page);

}  // namespace
}  // namespace heddle::worker
