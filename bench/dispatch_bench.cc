// The cost of one dispatch decision with 8 and 1,024 lessees that all have work: what was measured, the lease that came
// back, who is next, and when to ask again.

#include <benchmark/benchmark.h>

#include <cstdlib>

#include "policy/dispatch/table.h"

namespace heddle::policy {
namespace {

void turn(benchmark::State& state, const char* policy) {
  const auto lessees = static_cast<uint64_t>(state.range(0));
  const auto dispatch = std::move(make_dispatch(policy)).value();
  TimePoint now{};
  for (uint64_t id = 1; id <= lessees; ++id) {
    const double part = 1 / static_cast<double>(lessees);
    dispatch->joined({{id}}, {.job = {id}, .weight = static_cast<double>(1 + id % 7), .request = part, .limit = 0.9},
                     now);
    dispatch->pending({{id}}, now);
  }
  std::vector<LeaseOrder> orders;
  const auto lend = [&] {
    orders.clear();
    while (orders.empty()) {
      dispatch->decide(now, orders);
      if (orders.empty()) now = std::max(now, dispatch->next(now).value());
    }
    const Lend* const order = std::get_if<Lend>(&orders[0]);
    if (!order) std::abort();
    return order->to;
  };
  for (uint64_t id = 0; id < 20 * lessees; ++id) {  // until its books are as full as they get
    const Lessee holder = lend();
    now += std::chrono::milliseconds(10);
    dispatch->returned(holder, now);
  }
  for (auto _ : state) {
    const Lessee holder = lend();
    benchmark::DoNotOptimize(dispatch->next(now));
    now += std::chrono::milliseconds(10);
    dispatch->served(holder, {.busy = std::chrono::milliseconds(9), .merged_burst = std::chrono::milliseconds(9)}, now);
    dispatch->returned(holder, now);
  }
}

BENCHMARK_CAPTURE(turn, fs, "fs")->Arg(8)->Arg(1024);
BENCHMARK_CAPTURE(turn, tfs, "tfs")->Arg(8)->Arg(1024);
BENCHMARK_CAPTURE(turn, las, "las")->Arg(8)->Arg(1024);
BENCHMARK_CAPTURE(turn, token, "token")->Arg(8)->Arg(1024);

}  // namespace
}  // namespace heddle::policy
