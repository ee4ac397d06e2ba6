// How long one user's request waits for heddled while another user does what costs heddled most: 500 sessions, and
// requests without pause. An iteration is one `ping`. `p99_ms` is the wait that 99 of 100 pings stay below, `worst_ms`
// the longest wait of the run; the goal is 10 ms.
//
// heddled, its vault and its sockets are real; workers have no devices. Two users take root: without it both are one,
// and wait for each other's requests.

#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "daemon/testing/household.h"

namespace {

using namespace heddle;
using namespace heddle::daemon::testing;
using heddle::daemon::testing::Household;
using Json = Household::Json;

constexpr size_t kSessions = 500;
constexpr size_t kFlooders = 8;
constexpr Duration kBetweenPings = std::chrono::milliseconds(1);

constexpr const char* kConfig = R"(
[daemon]
log_level = "off"
ring_bulk = "128K"
ring_records = "128K"
[limits]
sessions = 1024
sessions_per_user = 1024
connections_per_user = 2048
[[device]]
preset = "P100"
count = 2
memory = "2G"
slowdown = 0
)";

// Makes this thread alone act for another user: the kernel reports the connecting thread's credentials to heddled. The
// thread also gets the lowest priority, so that the measured waits are for heddled and not for a processor.
void become_neighbour() {
  constexpr uid_t kNobody = 65534;
  ::setpriority(PRIO_PROCESS, 0, 19);
  if (::getuid() == 0) ::syscall(SYS_setresuid, kNobody, kNobody, kNobody);
}

// 500 sessions, each with a ring and a segment; half of them hold memory on a device, all that there is.
class Crowd {
 public:
  Crowd() {
    auto started =
        Household::start(kConfig, ::getuid() == 0 ? Household::Serves::kEverybody : Household::Serves::kItsUser);
    if (!started) throw std::runtime_error(started.error().text);
    house_ = std::move(*started);
    std::thread([this] { open_sessions(); }).join();
    house_->wait_for("status", [](const Json& answer) { return answer["sessions"] == kSessions; });
  }

  Household& house() { return *house_; }
  std::vector<TestClient>& sessions() { return sessions_; }

 private:
  void open_sessions() {
    become_neighbour();
    for (size_t i = 0; i < kSessions; ++i) {
      auto client = house_->client();
      if (!client || !client->open_device()) throw std::runtime_error("a session was not opened");
      if (!client->declare(1, client->at(0), Bytes{16 * kMiB}) || !client->begin(1))
        throw std::runtime_error("a task was not begun");
      sessions_.push_back(std::move(*client));
    }
  }

  std::unique_ptr<Household> house_;
  std::vector<TestClient> sessions_;
};

Crowd& crowd() {
  static Crowd one;
  return one;
}

// Runs `body` again and again on threads of its own, until it goes.
class Flood {
 public:
  Flood(size_t threads, const std::function<void(size_t)>& body) {
    for (size_t i = 0; i < threads; ++i) {
      threads_.emplace_back([this, i, body] {
        become_neighbour();
        while (!stop_.load(std::memory_order_relaxed)) body(i);
      });
    }
  }
  ~Flood() {
    stop_.store(true, std::memory_order_relaxed);
    for (std::thread& each : threads_) each.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

void measure_pings(benchmark::State& state) {
  auto socket = protocol::connect_to(crowd().house().socket());
  if (!socket) return state.SkipWithError("no connection");
  const MonotonicClock clock;
  std::vector<Duration> waits;
  for (auto _ : state) {
    const TimePoint asked = clock.now();
    if (!Household::ask(*socket, {{"command", "ping"}})) return state.SkipWithError("no answer");
    waits.push_back(clock.now() - asked);
    state.SetIterationTime(std::chrono::duration<double>(waits.back()).count());
    std::this_thread::sleep_for(kBetweenPings);
  }
  std::sort(waits.begin(), waits.end());
  const auto milliseconds = [](Duration wait) { return std::chrono::duration<double, std::milli>(wait).count(); };
  state.counters["p99_ms"] = milliseconds(waits[waits.size() * 99 / 100]);
  state.counters["worst_ms"] = milliseconds(waits.back());
}

void quiet(benchmark::State& state) {
  crowd();
  measure_pings(state);
}

// Each thread has a connection and asks again as soon as it is answered.
void commands(benchmark::State& state, const Json& command) {
  std::vector<protocol::Socket> sockets(kFlooders);
  const Flood flood(kFlooders, [&](size_t i) {
    if (sockets[i].get() < 0) sockets[i] = std::move(*protocol::connect_to(crowd().house().socket()));
    (void)Household::ask(sockets[i], command);
  });
  measure_pings(state);
}

// Connections that come and go.
void connections(benchmark::State& state) {
  const Flood flood(kFlooders, [](size_t) { (void)protocol::connect_to(crowd().house().socket()); });
  measure_pings(state);
}

// Sessions that come, begin a task that has to wait, and go.
void sessions(benchmark::State& state) {
  const Flood flood(kFlooders, [](size_t) {
    auto client = crowd().house().client();
    if (!client || !client->open_device()) return;
    (void)client->declare(1, client->at(0), Bytes{16 * kMiB});
    (void)client->begin(1);
  });
  measure_pings(state);
}

// Those that hold memory ask for more: all wait for each other, and each request is looked at for a deadlock.
void extensions(benchmark::State& state) {
  std::atomic<uint64_t> number{2};
  const Flood flood(kFlooders, [&](size_t i) {
    TestClient& client = crowd().sessions()[i];
    const uint64_t segment = number.fetch_add(1, std::memory_order_relaxed);
    (void)client.declare(segment, client.at(8 + segment % 4096 * 8), Bytes{2 * kMiB});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  measure_pings(state);
}

BENCHMARK(quiet)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(commands, ps, Json{{"command", "ps"}})->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(commands, devices, Json{{"command", "devices"}})->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(commands, trace, Json{{"command", "trace"}, {"since", 0}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(connections)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(sessions)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(extensions)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
