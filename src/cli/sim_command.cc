// heddle sim: a scenario's jobs on devices that are only counted, under one policy or several.

#include <algorithm>
#include <cstdio>
#include <optional>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/report/report.h"
#include "cli/sim_eager.h"
#include "cli/sim_report.h"
#include "cli/sim_sla.h"
#include "core/input_log.h"
#include "simulator/world.h"

namespace heddle::cli {
namespace {

constexpr char kExample[] =
    "A scenario is a TOML file:\n"
    "  policy = \"mgb-warps\"     # and dispatch, workers, horizon, seed, age_limit, window, terminate, resume, epoch\n"
    "  processors = 16          # that jobs share while they are on the host; 0, the default: each has one\n"
    "  eager_launch = true      # tasks may begin with a part of their memory on the host, in swap space\n"
    "  eager_free = false       # true: buffers are freed behind the last burst that uses them\n"
    "  [swap]\n"
    "  host = \"64G\"             # the size of swap space; 0, the default: there is none\n"
    "  idle = \"1s\"              # that others wait, and a job is on the host, before it gives way; 0: it never does\n"
    "  [[device]]\n"
    "  preset = \"P100\"          # and count, memory, context, slowdown, copy_slowdown, sharing, model\n"
    "  copy_bandwidth = \"12G\"   # between the host and the device, a second: the preset's is the default\n"
    "  count = 2\n"
    "  [[job]]\n"
    "  name = \"train\"           # and app, weight, share, limit, model\n"
    "  count = 16               # and start, every, arrivals = \"random\", repeats\n"
    "  memory = \"4G\"            # of each of its tasks; blocks, threads, registers, shared of its kernels\n"
    "  more = \"2G\"              # that each task asks for besides, before its burst more_at\n"
    "  tasks = 1\n"
    "  bursts = 100             # of each task: host time, then a copy, then kernels\n"
    "  host = \"5ms\"             # and before, behind: on the host, before the first task and behind the last\n"
    "  copy = \"1ms\"\n"
    "  busy = \"20ms\"            # kernel: how long one of them is; busy_most: each is drawn between the two\n"
    "  class = \"user-facing\"    # each burst is a request that is to end within slo; batch: the default\n"
    "  [[job.buffer]]           # what its memory consists of; a job with two or more may be launched eagerly\n"
    "  size = \"4G\"              # memory is the sum, and may be left out\n"
    "  touched = \"4G\"           # by the kernels of each burst, from the burst from until the burst until";

struct SimOptions {
  std::string file, log, report;
  std::vector<std::string> policies, dispatches, workers;
  bool as_json = false, lists_jobs = false;
};

struct Simulated {
  std::string policy, dispatch, workers;
  simulator::Outcome outcome;
  double jain = 1;
  ReportRun report = {};  // where one is wanted
};

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// "auto (12)": so many ran at once.
std::string shown_workers(const std::string& asked, uint32_t most_at_once) {
  return (asked == "0" ? "all" : asked) + " (" + std::to_string(most_at_once) + ")";
}

std::string name_of(const Simulated& run) {
  return run.policy + ", " + run.dispatch + (run.workers == "0" ? "" : ", " + run.workers + " workers");
}

std::string format(const char* form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

double used(const simulator::Outcome& outcome) {
  Duration sum{};
  for (const Duration busy : outcome.busy) sum += busy;
  const double whole = seconds(outcome.makespan) * double(outcome.busy.size());
  return whole > 0 ? seconds(sum) / whole : 0;
}

double mean_wait(const simulator::Outcome& outcome) {
  double sum = 0;  // of a million jobs: more than a Duration holds
  for (const auto& job : outcome.jobs) sum += seconds(job.waited);
  return outcome.jobs.empty() ? 0 : sum / double(outcome.jobs.size());
}

uint64_t refused(const simulator::Outcome& outcome) {
  return uint64_t(
      std::count_if(outcome.jobs.begin(), outcome.jobs.end(), [](const auto& job) { return !job.refused.empty(); }));
}

Json json_of(const simulator::JobOutcome& job) {
  const auto when = [](const std::optional<TimePoint>& at) {
    return at ? Json(seconds(at->time_since_epoch())) : Json();
  };
  Json json{{"name", job.name},
            {"arrived", when(job.arrived)},
            {"granted", when(job.granted)},
            {"ended", when(job.ended)},
            {"turnaround", job.runs > 0 ? Json(seconds(job.turnaround) / job.runs) : Json()},
            {"waited", seconds(job.waited)},
            {"busy", seconds(job.busy)},
            {"runs", job.runs},
            {"eager", eager_json(job.eager)},
            {"swap", swap_json(job.swap)}};
  if (!job.refused.empty()) json["refused"] = job.refused;
  return json;
}

Json json_of(const Simulated& run, bool lists_jobs) {
  const simulator::Outcome& outcome = run.outcome;
  Json json{{"policy", run.policy},
            {"dispatch", run.dispatch},
            {"workers", run.workers},
            {"most_at_once", outcome.most_at_once},
            {"completed", outcome.completed()},
            {"refused", refused(outcome)},
            {"makespan", seconds(outcome.makespan)},
            {"runs_per_second", outcome.runs_per_second()},
            {"mean_turnaround", seconds(outcome.mean_turnaround())},
            {"mean_wait", mean_wait(outcome)},
            {"used", used(outcome)},
            {"jain", run.jain},
            {"events", outcome.events}};
  json["requests"] = requests_json(outcome.user_facing);
  json["batch"] = revocations_json(outcome.batch);
  json["eager"] = eager_json(outcome.eager());
  json["swap"] = swap_json(outcome.swap());
  for (const Duration busy : outcome.busy) json["device_busy"].push_back(seconds(busy));
  if (!lists_jobs) return json;
  for (const auto& job : outcome.jobs) json["jobs"].push_back(json_of(job));
  return json;
}

const std::vector<std::string> kSimColumns{"POLICY", "DISPATCH",   "WORKERS",    "DONE", "REFUSED", "MAKESPAN",
                                           "JOBS/S", "OVER FIRST", "TURNAROUND", "WAIT", "USED",    "JAIN"};

// `first`: what the first run completed a second.
std::vector<std::string> row_of(const Simulated& run, double first) {
  const simulator::Outcome& outcome = run.outcome;
  return {run.policy,
          run.dispatch,
          shown_workers(run.workers, outcome.most_at_once),
          std::to_string(outcome.completed()),
          std::to_string(refused(outcome)),
          format("%.2f s", seconds(outcome.makespan)),
          format("%.3f", outcome.runs_per_second()),
          first > 0 ? format("%.2f", outcome.runs_per_second() / first) : "-",
          format("%.2f s", seconds(outcome.mean_turnaround())),
          format("%.2f s", mean_wait(outcome)),
          format("%.0f %%", 100 * used(outcome)),
          format("%.3f", run.jain)};
}

std::string table_of(const std::vector<Simulated>& runs) {
  Table table(kSimColumns);
  for (const Simulated& run : runs) table.add(row_of(run, runs.front().outcome.runs_per_second()));
  return table.text();
}

using Runs = std::vector<Simulated>;

// A further table of all runs: `row` gives what stands behind a run's policy and dispatch.
template <class Row>
std::string further_table(const Runs& runs, const std::vector<std::string>& titles, Row row) {
  std::vector<std::string> columns{"POLICY", "DISPATCH"};
  columns.insert(columns.end(), titles.begin(), titles.end());
  Table table(columns);
  for (const Simulated& run : runs) {
    std::vector<std::string> cells{run.policy, run.dispatch};
    for (std::string& cell : row(run.outcome)) cells.push_back(std::move(cell));
    table.add(cells);
  }
  return "\n" + table.text();
}

template <class Holds>
bool any_of(const Runs& runs, Holds holds) {
  return std::any_of(runs.begin(), runs.end(), [&](const Simulated& run) { return holds(run.outcome); });
}

bool any_requests(const Runs& runs) {
  return any_of(runs, [](const simulator::Outcome& outcome) { return outcome.user_facing.requests() > 0; });
}

bool any_eager(const Runs& runs) {
  return any_of(runs, [](const simulator::Outcome& outcome) { return outcome.eager().launches > 0; });
}

bool any_swap(const Runs& runs) {
  return any_of(runs, [](const simulator::Outcome& outcome) { return outcome.swap().count > 0; });
}

std::vector<std::string> eager_cells(const simulator::Outcome& outcome) {
  return eager_row(outcome.eager());
}

std::vector<std::string> swap_cells(const simulator::Outcome& outcome) {
  return swap_row(outcome.swap());
}

Status report_runs(const SimOptions& options, const std::vector<Simulated>& runs) {
  std::vector<ReportRun> reports;
  for (const Simulated& run : runs) {
    ReportRun& report = reports.emplace_back(run.report);
    report.name = name_of(run);
    const auto row = row_of(run, runs.front().outcome.runs_per_second());
    for (size_t i = 0; i < row.size(); ++i) report.figures.emplace_back(kSimColumns[i], row[i]);
    const auto add = [&](const std::vector<std::string>& columns, const std::vector<std::string>& cells) {
      for (size_t i = 0; i < cells.size(); ++i) report.figures.emplace_back(columns[i], cells[i]);
    };
    if (any_eager(runs)) add(eager_columns(), eager_cells(run.outcome));
    if (any_swap(runs)) add(swap_columns(), swap_cells(run.outcome));
  }
  return write_report(options.report, "Simulated: " + options.file, reports);
}

std::string jobs_of(const Simulated& run) {
  Table table({"JOB", "ARRIVED", "STARTED", "ENDED", "WAITED", "BUSY", "RUNS", ""});
  const auto when = [](const std::optional<TimePoint>& at) {
    return at ? format("%.3f s", seconds(at->time_since_epoch())) : std::string("-");
  };
  for (const auto& job : run.outcome.jobs) {
    table.add({job.name, when(job.arrived), when(job.granted), when(job.ended), format("%.3f s", seconds(job.waited)),
               format("%.3f s", seconds(job.busy)), std::to_string(job.runs), job.refused});
  }
  return "\n" + name_of(run) + "\n" + table.text();
}

Result<Simulated> simulate_once(const simulator::Scenario& scenario, const std::vector<double>& weights, InputLog* log,
                                bool reports) {
  simulator::Timeline timeline;
  auto outcome = simulator::World::run(scenario, log, reports ? &timeline : nullptr);
  if (!outcome) return tl::unexpected(std::move(outcome).error());
  const double jain = jain_index(*outcome, weights);
  Simulated run{scenario.policy, scenario.dispatch, text_of(scenario.workers), std::move(*outcome), jain};
  if (reports) run.report = report_of(scenario, run.outcome, timeline);
  return run;
}

// Those of the scenario where none are asked for.
Result<std::vector<simulator::Workers>> workers_of(const SimOptions& options, const simulator::Scenario& scenario) {
  std::vector<simulator::Workers> all;
  for (const std::string& text : options.workers) {
    const auto workers = simulator::parse_workers(text);
    if (!workers)
      return fail(ErrorCode::kInvalidArgument,
                  "--workers is '%s'; it must be 'auto', or a number of jobs from 0 (all) to 4294967295", text.c_str());
    all.push_back(*workers);
  }
  if (all.empty()) all.push_back(scenario.workers);
  return all;
}

struct Setting {
  std::string policy, dispatch;
  simulator::Workers workers;
};

// Each with each, of those asked for; the scenario's where none are.
Result<std::vector<Setting>> settings_of(const SimOptions& options, const simulator::Scenario& scenario) {
  const auto policies = options.policies.empty() ? std::vector{scenario.policy} : options.policies;
  const auto dispatches = options.dispatches.empty() ? std::vector{scenario.dispatch} : options.dispatches;
  const auto workers_asked = workers_of(options, scenario);
  if (!workers_asked) return tl::unexpected(workers_asked.error());
  std::vector<Setting> settings;
  for (const std::string& policy : policies) {
    for (const std::string& dispatch : dispatches) {
      for (const simulator::Workers& workers : *workers_asked) settings.push_back({policy, dispatch, workers});
    }
  }
  return settings;
}

// None where none is asked for. What it cannot write comes to `broken`.
Result<std::unique_ptr<InputLogFile>> open_log(const SimOptions& options, std::optional<Error>& broken) {
  if (options.log.empty()) return nullptr;
  return InputLogFile::open(options.log, Bytes{}, [&broken](const Error& error) { broken = error; });
}

Result<std::vector<Simulated>> simulate(const SimOptions& options) {
  auto scenario = simulator::load_scenario(options.file);
  if (!scenario) return tl::unexpected(std::move(scenario).error());
  auto settings = settings_of(options, *scenario);
  if (!settings) return tl::unexpected(std::move(settings).error());
  std::vector<double> weights;
  for (const auto& line : scenario->jobs) weights.push_back(line.shape.weight);
  std::optional<Error> broken;
  const auto log = open_log(options, broken);
  if (!log) return tl::unexpected(log.error());
  std::vector<Simulated> runs;
  for (const auto& [policy, dispatch, workers] : *settings) {
    scenario->policy = policy;
    scenario->dispatch = dispatch;
    scenario->workers = workers;
    auto run = simulate_once(*scenario, weights, log->get(), !options.report.empty());
    if (!run) return tl::unexpected(std::move(run).error());
    runs.push_back(std::move(*run));
  }
  if (*log) (*log)->flush();
  if (broken) return tl::unexpected(std::move(*broken));
  return runs;
}

void show(const SimOptions& options, const std::vector<Simulated>& runs) {
  if (options.as_json) {
    Json all = Json::array();
    for (const Simulated& run : runs) all.push_back(json_of(run, options.lists_jobs));
    print_json(all);
    return;
  }
  print(table_of(runs));
  if (any_requests(runs)) print(further_table(runs, request_columns(), request_row));
  if (any_eager(runs)) print(further_table(runs, eager_columns(), eager_cells));
  if (any_swap(runs)) print(further_table(runs, swap_columns(), swap_cells));
  if (!options.lists_jobs) return;
  for (const Simulated& run : runs) print(jobs_of(run));
}

int simulate_and_show(const SimOptions& options) {
  const auto runs = simulate(options);
  if (!runs) return report(runs.error());
  show(options, *runs);
  if (options.report.empty()) return kSuccess;
  const Status written = report_runs(options, *runs);  // last: what cannot be written takes nothing along
  return written ? kSuccess : report(written.error());
}

}  // namespace

void add_sim_command(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<SimOptions>();
  CLI::App* command = app.add_subcommand(
      "sim", "Simulate a scenario: the scheduler and the policies of heddled on devices that are only counted");
  command->add_option("scenario", options->file, "The TOML file")->required();
  command
      ->add_option("--policy", options->policies,
                   "Placement policies instead of the scenario's, with commas between them")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--dispatch", options->dispatches, "Dispatch policies likewise: each with each")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--workers", options->workers,
                   "Jobs at once instead of the scenario's, likewise: a number (0: all), or auto")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--report", options->report,
                      "Write an HTML page to this file: each device's tasks over time, shares, waits, the tables");
  command->add_option("--log", options->log,
                      "Append what the policies are told and decide to this file, for 'heddle replay'");
  command->add_flag("--jobs", options->lists_jobs, "Each job, too");
  command->add_flag("--json", options->as_json, "As JSON");
  command->footer(kExample);
  command->callback([options, &chosen] { chosen = [options] { return simulate_and_show(*options); }; });
}

}  // namespace heddle::cli
