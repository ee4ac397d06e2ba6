// What heddled costs: from announcing a task to its grant, against a bare futex ping-pong of the same run; how much
// sooner a warm worker is there than a cold one, and what a worker saves that stays for its program's next task. Speaks
// the protocol itself, as a program's runtime does.

#include <benchmark/benchmark.h>

#include <cstdio>
#include <optional>

#include "baseline.h"
#include "node.h"
#include "protocol/ring_writer.h"
#include "protocol/socket.h"

namespace {

using heddle::Bytes;
using heddle::Duration;
using heddle::Fd;
using heddle::bench::seconds_now;
using heddle::e2e::Node;
using namespace heddle::protocol;

constexpr Duration kLimit = std::chrono::seconds(20);
double ping_pong_s = 0;

template <class T>
T must(heddle::Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().text.c_str());
  std::exit(1);
}
void must(const heddle::Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().text.c_str());
  std::exit(1);
}

// One session with one virtual device.
struct Session {
  explicit Session(const std::string& path) : socket(must(connect_to(path))) {
    must(socket.send(Hello{}));
    const Welcome welcome = must(socket.expect<Welcome>(kLimit));
    window = welcome.windows[0];
    must(socket.send(OpenDevice{.request = 1, .virtual_device = 0, .window = window}));
    std::vector<Fd> descriptors;
    must(socket.expect<DeviceOpened>(kLimit, &descriptors));
    ring.emplace(must(RingMemory::attach(descriptors.at(0))));
    writer.emplace(*ring);
  }

  // Announces a task of 2 MiB and sleeps until heddled says that it is bound. Seconds that this took.
  double begin_task() {
    ++serial;
    must(
        socket.send(DeclareSegment{.number = serial, .address = window.base + serial * (2u << 20), .bytes = 2u << 20}));
    RingHeader& header = ring->header();
    const double begin = seconds_now();
    must(socket.send(BeginTask{.serial = serial, .need = {.threads_per_block = 32, .blocks = 1}}));
    sleep_until([&] { return header.task_serial == serial && header.binding == uint32_t(Binding::kBound); });
    return seconds_now() - begin;
  }
  // Seconds until the worker has done a first record.
  double first_record() {
    const double begin = seconds_now();
    writer->reserve<RecordHeader>(RecordType::kMarker, 0);
    const uint64_t sequence = writer->publish();
    sleep_until([&] { return ring->header().completed >= sequence; });
    return seconds_now() - begin;
  }
  void end_task() {
    writer->reserve<RecordHeader>(RecordType::kFree, 0)->a = serial;
    writer->publish();
    writer->reserve<RecordHeader>(RecordType::kTaskEnd, 0)->a = serial;
    writer->publish();
    sleep_until([&] { return ring->header().binding == uint32_t(Binding::kUnbound); });
  }

  template <class Condition>
  void sleep_until(Condition holds) {
    RingHeader& header = ring->header();
    for (;;) {
      const uint32_t seen = read_bell(header.to_client);
      if (holds()) return;
      if (header.binding == uint32_t(Binding::kFailed)) {
        std::fprintf(stderr, "task failed: %s\n", header.error_text);
        std::exit(1);
      }
      wait_bell(header.to_client, seen, std::chrono::milliseconds(100));
    }
  }

  Socket socket;
  Window window;
  std::optional<RingMemory> ring;
  std::optional<RingWriter> writer;
  uint64_t serial = 0;
};

std::string config(int warm_workers, int kept_workers = 0) {
  return "[daemon]\nwarm_workers = " + std::to_string(warm_workers) +
         "\nkept_workers = " + std::to_string(kept_workers) +
         "\n[[device]]\npreset = 'P100'\ncount = 1\nmemory = '256M'\nslowdown = 0\ncopy_slowdown = 0\n";
}

void wait_for_warm(Node& node, int count) {
  Node::eventually([&] { return node.ask({{"command", "devices"}})["devices"][0]["warm_workers"] >= count; });
}

// With one warm worker and no other each time: the last one has ended, and no new one is just being started on the same
// cores. What that costs is the other figure. Goal: 2 ping-pongs at most.
void task_begin(benchmark::State& state) {
  Node node(config(1));
  if (!node.ready()) return state.SkipWithError(node.why().c_str());
  Session session(node.socket());
  std::vector<double> times;
  for (auto _ : state) {
    wait_for_warm(node, 1);
    Node::eventually([&] { return node.ask({{"command", "status"}})["workers"] == 1; });
    const double one = session.begin_task();
    session.first_record();
    session.end_task();
    times.push_back(one);
    state.SetIterationTime(one);
  }
  state.counters["ping_pongs"] = heddle::bench::median(times) / ping_pong_s;
}

// From the announcement to the first record done.
double first_result(Node& node, bool warm) {
  if (warm) wait_for_warm(node, 1);
  Session session(node.socket());
  const double spent = session.begin_task() + session.first_record();
  session.end_task();
  return spent;
}

void warm_worker(benchmark::State& state) {
  Node cold_node(config(0)), warm_node(config(1));
  if (!cold_node.ready() || !warm_node.ready()) return state.SkipWithError("heddled did not start");
  double warm = 0, cold = 0;
  for (auto _ : state) {
    cold += first_result(cold_node, false);
    const double one = first_result(warm_node, true);
    warm += one;
    state.SetIterationTime(one);
  }
  state.counters["cold_over_warm"] = cold / warm;
}

// A program that frees all it has and allocates anew, ten times over. Seconds.
double ten_tasks(Node& node) {
  Session session(node.socket());
  const double begin = seconds_now();
  for (int i = 0; i < 10; ++i) {
    session.begin_task();
    session.first_record();
    session.end_task();
  }
  return seconds_now() - begin;
}

void tasks_in_a_row(benchmark::State& state) {
  Node fresh_node(config(1, 0)), kept_node(config(1, 1));
  if (!fresh_node.ready() || !kept_node.ready()) return state.SkipWithError("heddled did not start");
  double fresh = 0, kept = 0;
  for (auto _ : state) {
    fresh += ten_tasks(fresh_node);
    const double ten = ten_tasks(kept_node);
    kept += ten;
    state.SetIterationTime(ten);
  }
  state.counters["fresh_over_kept"] = fresh / kept;
}

BENCHMARK(tasks_in_a_row)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(task_begin)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(warm_worker)->UseManualTime()->Unit(benchmark::kMicrosecond);

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
