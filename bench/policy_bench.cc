// The cost of one placement decision at 8 and 1,024 devices. Every device but the last is loaded so that memory is free
// everywhere, but SMs and places only on the last, so that a policy that looks for those looks at all devices.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <random>

#include "policy/dispatch/table.h"
#include "policy/test_pool.h"

namespace heddle::policy {
namespace {

constexpr SessionId kAsker{1'000'000};
constexpr ComputeNeed kWholeDevice{300, 512, 32, {}};
constexpr ComputeNeed kTinyGrid{1, 32, 32, {}};

// Four tasks a device, each its own job, of shapes that load the SMs unevenly.
std::vector<std::pair<TaskRequest, DeviceId>> load(uint64_t devices) {
  std::mt19937_64 random(1);
  std::vector<std::pair<TaskRequest, DeviceId>> tasks;
  for (uint64_t id = 1; id <= (devices - 1) * 4; ++id) {
    const auto warps = static_cast<uint32_t>(1 + random() % 8);
    const ComputeNeed need{600 / warps + random() % 60, 32 * warps, 32, {}};
    tasks.push_back({{{id}, {id}, {id}, 0, "p100", gib(3), need}, DeviceId{(id - 1) / 4}});
  }
  return tasks;
}

// The worst for mgb-sm: 28 SMs have 20 warps left and 28 have 12, in several runs, so that a device has room for 40
// blocks of 16 warps by its totals, but not on its SMs.
std::vector<std::pair<TaskRequest, DeviceId>> fragmented_load(uint64_t devices) {
  static constexpr ComputeNeed kShapes[] = {{616, 128, 32, {}}, {28, 256, 32, {}}, {10, 32, 32, {}}, {10, 32, 32, {}}};
  auto tasks = load(devices);
  for (size_t i = 0; i < tasks.size(); ++i) tasks[i].first.compute = kShapes[i % 4];
  return tasks;
}
constexpr ComputeNeed kFortyBlocks{40, 512, 32, {}};

// The policy's answer and its reason, alone.
void measure_place(benchmark::State& state, const char* policy, decltype(load)& make_load, const ComputeNeed& asked) {
  const auto devices = static_cast<uint64_t>(state.range(0));
  PlacementState placed(policy_named(policy), p100s(devices));
  for (const auto& [task, device] : make_load(devices)) {
    placed.open_session(task.session, task.job);
    placed.begin({task.id, task.session, task.job, 0, 0, task.memory, task.compute, {}, {}}, device);
  }
  const Request request{{1}, kAsker, {kAsker.value}, 0, 0, gib(2), asked, {}, {}};
  for (auto _ : state) benchmark::DoNotOptimize(placed.placement().place(request, placed.pool()));
}

void place(benchmark::State& state, const char* policy) {
  measure_place(state, policy, load, kWholeDevice);
}

void place_fragmented(benchmark::State& state, const char* policy) {
  measure_place(state, policy, fragmented_load, kFortyBlocks);
}

// A task's whole way: its arrival, the decision with ledger and queue, its end.
void task(benchmark::State& state, const char* policy) {
  const auto devices = static_cast<uint64_t>(state.range(0));
  Scheduler scheduler(policy_named(policy), p100s(devices));
  for (const auto& [task, device] : load(devices)) {
    scheduler.session_opened(task.session, task.job, task.model, {}, at(0));
    if (!scheduler.adopt(task, device, at(0))) std::abort();
  }
  scheduler.session_opened(kAsker, {kAsker.value}, "p100", {}, at(0));
  TaskId id = {kAsker.value};
  for (auto _ : state) {
    ++id.value;
    scheduler.task_arrived({id, kAsker, {}, 0, "p100", gib(2), kWholeDevice}, at(1));
    const auto decided = scheduler.decisions(at(1));
    if (decided.size() != 1 || decided[0].kind != Decision::Kind::kGrant) std::abort();
    scheduler.task_ended(id, at(1));
  }
}

// The same where devices are lent, and each has four lessees with work, one of which holds it: what heddled's turn
// decides about a task that comes, has work and ends. The scheduler places it; the dispatch policy of its device hears
// of it and decides at each of the three, and says when it wants to again. Other devices' are looked at in passing.
void task_leased(benchmark::State& state, const char* policy, const char* dispatch) {
  struct Leased {
    std::unique_ptr<Dispatch> dispatch;
    bool changed = false;
  };
  const auto devices = static_cast<uint64_t>(state.range(0));
  Scheduler scheduler(policy_named(policy), p100s(devices));
  std::vector<Leased> all(devices);
  for (Leased& each : all) each.dispatch = std::move(make_dispatch(dispatch)).value();
  TimePoint now = at(0);
  std::vector<LeaseOrder> orders;
  const auto decide = [&] {
    for (Leased& each : all) {
      if (!std::exchange(each.changed, false)) continue;
      each.dispatch->decide(now, orders);
      benchmark::DoNotOptimize(each.dispatch->next(now));
    }
  };
  const auto joins = [&](SessionId session, DeviceId device) {
    Leased& on = all[device.value];
    on.dispatch->joined({session}, {.job = {session.value}, .request = 0.2, .limit = 0.9}, now);
    on.dispatch->pending({session}, now);
    on.changed = true;
  };
  for (const auto& [task, device] : load(devices)) {
    scheduler.session_opened(task.session, task.job, task.model, {}, now);
    if (!scheduler.adopt(task, device, now)) std::abort();
    joins(task.session, device);
  }
  decide();
  scheduler.session_opened(kAsker, {kAsker.value}, "p100", {}, now);
  joins({kAsker.value + 1}, {devices - 1});  // the task goes to the last device: somebody holds that one, too
  decide();
  TaskId id = {kAsker.value};
  for (auto _ : state) {
    ++id.value;
    now += std::chrono::microseconds(1);
    orders.clear();
    scheduler.task_arrived({id, kAsker, {}, 0, "p100", gib(2), kWholeDevice}, now);
    const auto decided = scheduler.decisions(now);
    if (decided.size() != 1 || decided[0].kind != Decision::Kind::kGrant) std::abort();
    Leased& on = all[decided[0].device.value];
    joins(kAsker, decided[0].device);
    decide();
    on.dispatch->drained({kAsker}, now);
    on.changed = true;
    decide();
    on.dispatch->left({kAsker}, now);
    on.changed = true;
    scheduler.task_ended(id, now);
    decide();
  }
}
#define HEDDLE_LEASED_BENCH(name, text) \
  BENCHMARK_CAPTURE(task_leased, mgb_warps_##name, "mgb-warps", text)->Arg(8)->Arg(1024)
HEDDLE_LEASED_BENCH(open, "open");
HEDDLE_LEASED_BENCH(fs, "fs");
HEDDLE_LEASED_BENCH(tfs, "tfs");
HEDDLE_LEASED_BENCH(las, "las");
HEDDLE_LEASED_BENCH(token, "token");

// The request that closes a deadlock of all sessions of a device: the search, the refusal, and who is served by it. A
// fresh scheduler for each, since a refusal changes it.
void deadlock(benchmark::State& state) {
  const auto sessions = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    Scheduler scheduler(policy_named("mgb-warps"), p100s(1));
    const Bytes held{gib(16).value / sessions};
    for (uint64_t id = 1; id <= sessions; ++id) {
      scheduler.session_opened({id}, {id}, "p100", gib(1000), TimePoint{});
      scheduler.task_arrived({{id}, {id}, {id}, 0, "", held, kTinyGrid}, TimePoint{});
    }
    benchmark::DoNotOptimize(scheduler.decisions(TimePoint{}));
    for (uint64_t id = 1; id < sessions; ++id) scheduler.extension_requested({id}, gib(2), TimePoint{});
    benchmark::DoNotOptimize(scheduler.decisions(TimePoint{}));
    state.ResumeTiming();
    scheduler.extension_requested({sessions}, gib(2), TimePoint{});
    benchmark::DoNotOptimize(scheduler.decisions(TimePoint{}));
  }
}
BENCHMARK(deadlock)->Arg(15)->Arg(60)->Arg(240)->Arg(500)->Unit(benchmark::kMillisecond);

// A task's end where so many wait, of two needs: the oldest of one takes its place, all others wait on. Another
// arrives.
void long_line(benchmark::State& state) {
  Scheduler scheduler(policy_named("mgb-warps"), p100s(8));
  uint64_t arrived = 0;
  std::vector<TaskId> running;
  const auto arrive = [&] {
    const uint64_t id = ++arrived;
    scheduler.session_opened({id}, {id}, "p100", {}, at(0));
    scheduler.task_arrived({{id}, {id}, {id}, 0, "", gib(id % 2 == 0 ? 5 : 4), kTinyGrid}, at(0));
    for (const Decision& decision : scheduler.decisions(at(0))) running.push_back(decision.task);
  };
  while (arrived < static_cast<uint64_t>(state.range(0))) arrive();
  size_t next = 0;
  for (auto _ : state) {
    scheduler.session_closed({running[next++].value}, at(0));
    arrive();
    if (next == running.size()) std::abort();
  }
}
BENCHMARK(long_line)->Arg(100)->Arg(100'000);

#define HEDDLE_POLICY_BENCH(name, text)                    \
  BENCHMARK_CAPTURE(place, name, text)->Arg(8)->Arg(1024); \
  BENCHMARK_CAPTURE(task, name, text)->Arg(8)->Arg(1024)

HEDDLE_POLICY_BENCH(sa, "sa");
HEDDLE_POLICY_BENCH(cg, "cg:4");
HEDDLE_POLICY_BENCH(schedgpu, "schedgpu");
HEDDLE_POLICY_BENCH(mgb_sm, "mgb-sm");
BENCHMARK_CAPTURE(place_fragmented, mgb_sm, "mgb-sm")->Arg(8)->Arg(1024);
HEDDLE_POLICY_BENCH(mgb_warps, "mgb-warps");
HEDDLE_POLICY_BENCH(grr, "grr");
HEDDLE_POLICY_BENCH(gmin, "gmin");
HEDDLE_POLICY_BENCH(gwtmin, "gwtmin");
HEDDLE_POLICY_BENCH(rtf, "rtf");
HEDDLE_POLICY_BENCH(guf, "guf");
HEDDLE_POLICY_BENCH(guf_cpu, "guf:cpu");

}  // namespace
}  // namespace heddle::policy
