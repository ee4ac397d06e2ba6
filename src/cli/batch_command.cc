// heddle batch: a queue of programs under one policy, and what came of it.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "cli/batch/batch_report.h"
#include "cli/batch/concurrency.h"
#include "cli/batch/runner.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/report/report.h"
#include "core/clock.h"

namespace heddle::cli {
namespace {

struct BatchOptions {
  std::vector<std::string> policies;  // empty: the daemon's
  std::string jobs_file, workers = "auto", trace, baseline, output, json_file, report;
  std::optional<uint32_t> max_workers;
  bool as_json = false, quiet = false;
};

std::atomic<bool> interrupted{false};

void interrupt(int) {
  interrupted = true;
}

// One line on a terminal; an outage of heddled is said in any case, once.
class ProgressLine {
 public:
  ProgressLine(bool shows, std::string policy) : shows_(shows), policy_(std::move(policy)) {}

  void show(const Progress& progress) {
    if (!progress.unreached.empty() && !waiting_) {
      clear();
      std::fprintf(stderr, "heddle: waiting for heddled to start the next job: %s\n", progress.unreached.c_str());
    }
    waiting_ = !progress.unreached.empty();
    if (!shows_) return;
    std::fprintf(stderr, "\r%-12s %5.1f s  %d of %d done, %d running, %d crashed   ", policy_.c_str(),
                 static_cast<double>(progress.elapsed.count()) / 1e9, progress.completed + progress.crashed,
                 progress.total, progress.running, progress.crashed);
  }
  void clear() const {
    if (shows_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  const bool shows_;
  const std::string policy_;
  bool waiting_ = false;
};

// One policy's run of the queue.
struct Outcome {
  BatchResult result;
  BatchSummary summary;
  std::string directory;  // of the jobs' output
  ReportRun report = {};
};

const std::vector<std::string> kBatchColumns{"POLICY",     "WORKERS", "JOBS/MIN", "RATIO",           "MAKESPAN",
                                             "TURNAROUND", "WAIT",    "CRASHED",  "KERNEL SLOWDOWN", "OVERRUN"};

// "auto (12)": so many ran at once.
std::string shown_workers(const BatchResult& result) {
  const std::string most = std::to_string(result.workers);
  return result.workers_asked == "auto" ? "auto (" + most + ")" : most;
}

// Throughput is also told against the first policy of the list, which did `first` a minute.
std::vector<std::string> row_of(const Outcome& outcome, double first) {
  const auto percent = [](double share) { return stringf("%+.1f %%", share * 100); };
  const BatchSummary& summary = outcome.summary;
  return {outcome.result.policy,
          shown_workers(outcome.result),
          stringf("%.2f", summary.throughput_per_minute),
          first > 0 ? stringf("%.2f", summary.throughput_per_minute / first) : "-",
          to_string(summary.makespan),
          to_string(summary.mean_turnaround),
          to_string(summary.mean_wait),
          stringf("%d of %zu", summary.crashed, outcome.result.jobs.size()),
          summary.kernel_slowdown ? percent(*summary.kernel_slowdown) : "-",
          percent(summary.overrun) + (summary.overrun > kMostOverrun ? " (timing invalid)" : "")};
}

std::string table_of(const std::vector<Outcome>& outcomes) {
  Table table(kBatchColumns);
  for (const Outcome& outcome : outcomes) table.add(row_of(outcome, outcomes.front().summary.throughput_per_minute));
  return table.text();
}

Status report_outcomes(const BatchOptions& options, const std::vector<Outcome>& outcomes) {
  std::vector<ReportRun> runs;
  for (const Outcome& outcome : outcomes) {
    ReportRun& run = runs.emplace_back(outcome.report);
    run.name = outcome.result.policy;
    const auto row = row_of(outcome, outcomes.front().summary.throughput_per_minute);
    for (size_t i = 0; i < row.size(); ++i) run.figures.emplace_back(kBatchColumns[i], row[i]);
  }
  return write_report(options.report, options.jobs_file, runs);
}

std::string crashes_of(const Outcome& outcome) {
  std::string text;
  for (const JobResult& job : outcome.result.jobs) {
    if (!job.crashed()) continue;
    text += stringf("  %s: status %d: %s (%s/%s.log)\n", job.job.name.c_str(), job.exit_status, job.last_line.c_str(),
                    outcome.directory.c_str(), job.job.name.c_str());
  }
  return text.empty() ? "" : "crashed under " + outcome.result.policy + ":\n" + text;
}

struct Pool {
  std::string policy;
  std::vector<std::string> devices;
};

Result<Concurrency> concurrency_of(const BatchOptions& options, const Pool& pool) {
  if (options.workers == "auto")
    return Concurrency(admission_limits(pool.policy, pool.devices.size(), options.max_workers));
  if (options.max_workers)
    return fail(
        ErrorCode::kInvalidArgument,
        "--max-workers is %u and --workers '%s'; the former limits '--workers auto' alone: leave one of them out",
        *options.max_workers, options.workers.c_str());
  char* end = nullptr;
  const long count = std::strtol(options.workers.c_str(), &end, 10);
  if (*end != '\0' || count < 1 || count > 10'000)
    return fail(ErrorCode::kInvalidArgument, "--workers is '%s'; it must be 'auto' or a number from 1 to 10000",
                options.workers.c_str());
  return Concurrency(static_cast<uint32_t>(count));
}

Result<Pool> prepare_daemon(DaemonLink& link, const std::string& policy) {
  if (!policy.empty()) {
    if (auto set = link.request({{"command", "set_policy"}, {"policy", policy}}); !set)
      return tl::unexpected(std::move(set).error());
  }
  auto status = link.request({{"command", "status"}});
  if (!status) return tl::unexpected(std::move(status).error());
  auto devices = link.request({{"command", "devices"}});
  if (!devices) return tl::unexpected(std::move(devices).error());
  Pool pool{string_of(*status, "policy"), {}};
  for (const Json& device : devices->value("devices", Json::array()))
    pool.devices.push_back("device " + string_of(device, "device") + ": " + string_of(device, "name"));
  return pool;
}

Result<std::string> make_output_directory(const std::string& wanted) {
  std::error_code error;
  if (!wanted.empty()) {
    std::filesystem::create_directories(wanted, error);
    if (error) return fail(ErrorCode::kSystem, "cannot make '%s': %s", wanted.c_str(), error.message().c_str());
    return wanted;
  }
  std::string pattern = (std::filesystem::temp_directory_path() / "heddle-batch-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) return fail_errno(-1, "cannot make '%s'", pattern.c_str());
  return pattern;
}

Status write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return fail_errno(-1, "cannot write '%s'", path.c_str());
  return {};
}

// One policy gives an object, several give an array of them.
Json json_of(const std::vector<Outcome>& outcomes) {
  if (outcomes.size() == 1) return to_json(outcomes[0].result, outcomes[0].summary);
  Json all = Json::array();
  for (const Outcome& outcome : outcomes) all.push_back(to_json(outcome.result, outcome.summary));
  return all;
}

Status publish(const BatchOptions& options, const std::vector<Outcome>& outcomes) {
  if (options.as_json) {
    print_json(json_of(outcomes));
  } else {
    print(table_of(outcomes));
    for (const Outcome& outcome : outcomes) print(crashes_of(outcome));
  }
  // A file that cannot be written takes nothing along.
  Status written;
  if (!options.json_file.empty()) written = write_text(options.json_file, json_text(json_of(outcomes), 2) + "\n");
  if (!options.report.empty()) {
    if (Status reported = report_outcomes(options, outcomes); !reported) written = std::move(reported);
  }
  return written;
}

// "trace.json" becomes "trace-sa.json" where several policies write one each.
std::string trace_path(const BatchOptions& options, const std::string& policy) {
  if (options.policies.size() < 2) return options.trace;
  const std::filesystem::path path = options.trace;
  return (path.parent_path() / (path.stem().string() + "-" + policy + path.extension().string())).string();
}

constexpr Duration kEndsLimit = std::chrono::seconds(10);

// A program is gone a moment before heddled has booked its end; the trace is read after that.
void await_ends(DaemonLink& link, const BatchResult& result) {
  std::set<uint64_t> ours;
  for (const JobResult& job : result.jobs) ours.insert(job.heddle_job);
  const TimePoint end = MonotonicClock().now() + kEndsLimit;
  while (MonotonicClock().now() < end) {
    auto answer = link.ps();
    if (!answer) return;
    const Json sessions = answer->value("sessions", Json::array());
    const bool lives = std::any_of(sessions.begin(), sessions.end(),
                                   [&](const Json& session) { return ours.contains(count_of(session, "job")); });
    if (!lives) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// What heddled saw of the jobs. One that was started anew during the batch has forgotten what its predecessor saw.
Result<std::vector<TraceEvent>> events_of(DaemonLink& link, uint64_t cursor, const BatchResult& result) {
  await_ends(link, result);
  auto events = read_trace(link, cursor);
  if (events || events.error().code != ErrorCode::kPeerDied) return events;
  std::fprintf(
      stderr,
      "heddle: heddled was restarted during the batch: waits, kernel times and traces are of what came after\n");
  auto successor = connect_to_running();
  if (!successor) return tl::unexpected(std::move(successor).error());
  await_ends(*successor, result);
  return read_trace(*successor, 0);
}

Result<Outcome> run_one(const BatchOptions& options, const std::vector<BatchJob>& jobs, const std::string& policy,
                        const std::string& directory, const KernelBaseline& baseline) {
  auto link = connect_or_start();
  if (!link) return tl::unexpected(std::move(link).error());
  auto pool = prepare_daemon(*link, policy);
  if (!pool) return tl::unexpected(std::move(pool).error());
  auto concurrency = concurrency_of(options, *pool);
  if (!concurrency) return tl::unexpected(std::move(concurrency).error());
  auto cursor = trace_cursor(*link);
  if (!cursor) return tl::unexpected(std::move(cursor).error());

  ProgressLine line(!options.quiet && ::isatty(STDERR_FILENO), pool->policy);
  const TimePoint begin = MonotonicClock().now();
  Outcome outcome{{pool->policy, options.workers, 0, {}, {}}, {}, directory};
  auto finished =
      run_jobs(jobs, directory, *concurrency, interrupted, [&](const Progress& progress) { line.show(progress); });
  outcome.result.workers = concurrency->most_at_once();
  line.clear();
  if (!finished) return tl::unexpected(std::move(finished).error());
  outcome.result.jobs = std::move(*finished);
  for (const JobResult& job : outcome.result.jobs)
    outcome.result.makespan = std::max(outcome.result.makespan, job.ended);

  auto events = events_of(*link, *cursor, outcome.result);
  if (!events) return tl::unexpected(std::move(events).error());
  add_trace(outcome.result, *events, begin);
  if (!options.trace.empty())
    HEDDLE_TRY(write_perfetto(trace_path(options, pool->policy), outcome.result, *events, pool->devices, begin));
  outcome.report = report_of(outcome.result, *events, pool->devices, begin);
  outcome.summary = summarise(outcome.result, baseline);
  return outcome;
}

Result<int> run_batch(const BatchOptions& options) {
  auto jobs = read_jobs_file(options.jobs_file);
  if (!jobs) return tl::unexpected(std::move(jobs).error());
  KernelBaseline baseline;
  if (!options.baseline.empty()) {
    auto read = read_baseline(options.baseline);
    if (!read) return tl::unexpected(std::move(read).error());
    baseline = std::move(*read);
  }
  auto directory = make_output_directory(options.output);
  if (!directory) return tl::unexpected(std::move(directory).error());
  ::signal(SIGINT, interrupt);
  ::signal(SIGTERM, interrupt);

  std::vector<Outcome> outcomes;
  int crashed = 0;
  for (const std::string& policy : options.policies.empty() ? std::vector<std::string>{""} : options.policies) {
    auto own = make_output_directory(policy.empty() ? *directory : *directory + "/" + policy);
    if (!own) return tl::unexpected(std::move(own).error());
    auto outcome = run_one(options, *jobs, policy, *own, baseline);
    if (!outcome) return tl::unexpected(std::move(outcome).error());
    if (interrupted) return 130;
    crashed += outcome->summary.crashed;
    // Under sa every job has its device to itself: the others' kernels are told against it.
    if (baseline.empty() && outcome->result.policy == "sa") baseline = baseline_of(outcome->result);
    outcomes.push_back(std::move(*outcome));
  }
  HEDDLE_TRY(publish(options, outcomes));
  return crashed ? kFailure : kSuccess;
}

int batch(const BatchOptions& options) {
  auto status = run_batch(options);
  return status ? *status : report(status.error());
}

}  // namespace

void add_batch_command(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<BatchOptions>();
  CLI::App* command = app.add_subcommand("batch", "Run a queue of programs under one policy, and report");
  command->add_option("jobs", options->jobs_file, "The queue: a TOML file of [[job]] entries")->required();
  command
      ->add_option(
          "--policy", options->policies,
          "Placement policy, as 'heddle policies' lists them; several with commas run the queue once under each "
          "(default: the daemon's)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--workers", options->workers,
                      "Programs at once: a number, or auto (the default): another is started as long as few wait for a "
                      "device and the devices have use for more");
  command
      ->add_option(
          "--max-workers", options->max_workers,
          "The most that auto runs at once (default: as many as processors, but at least 5 a device). More than "
          "the machine's memory holds, by the largest job so far, it does not run either")
      ->check(CLI::Range(1, 10'000));
  command->add_option("--trace", options->trace, "Write a trace for Perfetto to this file");
  command->add_option("--report", options->report,
                      "Write an HTML page to this file: each device's tasks over time, shares, waits, the tables");
  command->add_option("--baseline", options->baseline,
                      "A result of an earlier 'batch --json-file' in which every job had "
                      "its device alone: kernel slowdown is told against it");
  command->add_option("--output", options->output, "Directory for each job's output (default: a new one in /tmp)");
  command->add_option("--json-file", options->json_file, "Write the result as JSON to this file too");
  command->add_flag("--json", options->as_json, "Print the result as JSON");
  command->add_flag("--quiet", options->quiet, "No progress on the terminal");
  command->footer("Exit status 1 when a job crashed. Ctrl-C ends what runs and returns 130.");
  command->callback([options, &chosen] { chosen = [options] { return batch(*options); }; });
}

}  // namespace heddle::cli
