#include "cli/sim_sla.h"

#include <cstdio>

namespace heddle::cli {
namespace {

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

Json percentiles_json(const policy::Percentiles& times) {
  if (times.count() == 0) return {};
  return {{"p50", seconds_of(times.at(0.5))}, {"p95", seconds_of(times.at(0.95))}, {"p99", seconds_of(times.at(0.99))}};
}

std::string part_text(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * part);
  return text;
}

std::string time_text(const policy::Percentiles& times, double part) {
  return times.count() == 0 ? "-" : to_string(times.at(part));
}

}  // namespace

Json requests_json(const policy::Sla& user_facing) {
  return {{"count", user_facing.requests()},
          {"met", user_facing.met()},
          {"missed", user_facing.missed()},
          {"share_met", user_facing.share_met()},
          {"time", percentiles_json(user_facing.times())},
          {"wait", percentiles_json(user_facing.waits())},
          {"busy", seconds_of(user_facing.busy())}};
}

Json revocations_json(const policy::Sla& batch) {
  return {{"busy", seconds_of(batch.busy())},     {"lost", seconds_of(batch.lost())},
          {"share_lost", batch.share_lost()},     {"revocations", batch.revocations()},
          {"terminations", batch.terminations()}, {"latency", percentiles_json(batch.revocation_latencies())}};
}

const std::vector<std::string>& request_columns() {
  static const std::vector<std::string> columns{"REQUESTS", "MET",     "P50",         "P95",      "P99",
                                                "WAIT P99", "REVOKED", "LATENCY P99", "RUN AGAIN"};
  return columns;
}

std::vector<std::string> request_row(const simulator::Outcome& outcome) {
  const policy::Sla &requests = outcome.user_facing, &batch = outcome.batch;
  return {std::to_string(requests.requests()), part_text(requests.share_met()),
          time_text(requests.times(), 0.5),    time_text(requests.times(), 0.95),
          time_text(requests.times(), 0.99),   time_text(requests.waits(), 0.99),
          std::to_string(batch.revocations()), time_text(batch.revocation_latencies(), 0.99),
          part_text(batch.share_lost())};
}

}  // namespace heddle::cli
