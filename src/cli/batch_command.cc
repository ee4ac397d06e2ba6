// heddle batch: a queue of programs under one policy, and what came of it.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "cli/batch/runner.h"
#include "cli/batch/trace.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "core/clock.h"

namespace heddle::cli {
namespace {

struct Options {
  std::string jobs_file, policy, workers = "auto", trace, baseline, output, json_file;
  bool as_json = false, quiet = false;
};

// Workers a device under policies that place by need: the paper found 5 a P100 a good middle (papers/case.txt V-A).
constexpr int kWorkersPerDevice = 5;

std::atomic<bool> interrupted{false};

void interrupt(int) {
  interrupted = true;
}

Result<int> worker_count(const std::string& text, const std::string& policy, size_t devices) {
  if (text == "auto") {
    const auto pool = static_cast<int>(devices);
    if (policy == "sa") return pool;
    if (policy.starts_with("cg:")) return pool * std::max(1, std::atoi(policy.c_str() + 3));
    return pool * kWorkersPerDevice;
  }
  char* end = nullptr;
  const long count = std::strtol(text.c_str(), &end, 10);
  if (*end != '\0' || count < 1 || count > 10'000)
    return fail(ErrorCode::kInvalidArgument, "--workers is '%s'; it must be 'auto' or a number from 1 to 10000",
                text.c_str());
  return static_cast<int>(count);
}

void show_progress(const Progress& progress, const std::string& policy) {
  std::fprintf(stderr, "\r%-12s %5.1f s  %d of %d done, %d running, %d crashed   ", policy.c_str(),
               static_cast<double>(progress.elapsed.count()) / 1e9, progress.completed + progress.crashed,
               progress.total, progress.running, progress.crashed);
}

Table table_of(const BatchResult& result, const BatchSummary& summary) {
  const auto percent = [](double share) { return stringf("%+.1f %%", share * 100); };
  Table table(
      {"POLICY", "WORKERS", "JOBS/MIN", "MAKESPAN", "TURNAROUND", "WAIT", "CRASHED", "KERNEL SLOWDOWN", "OVERRUN"});
  table.add({result.policy, std::to_string(result.workers), stringf("%.2f", summary.throughput_per_minute),
             to_string(summary.makespan), to_string(summary.mean_turnaround), to_string(summary.mean_wait),
             stringf("%d of %zu", summary.crashed, result.jobs.size()),
             summary.kernel_slowdown ? percent(*summary.kernel_slowdown) : "-",
             percent(summary.overrun) + (summary.overrun > kMostOverrun ? " (timing invalid)" : "")});
  return table;
}

std::string crashes_of(const BatchResult& result, const std::string& directory) {
  std::string text;
  for (const JobResult& job : result.jobs) {
    if (!job.crashed()) continue;
    text += stringf("  %s: status %d: %s (%s/%s.log)\n", job.job.name.c_str(), job.exit_status, job.last_line.c_str(),
                    directory.c_str(), job.job.name.c_str());
  }
  return text.empty() ? "" : "crashed:\n" + text;
}

struct Pool {
  std::string policy;
  std::vector<std::string> devices;
};

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

Status write_results(const Options& options, const BatchResult& result, const BatchSummary& summary,
                     const std::string& directory) {
  if (!options.json_file.empty()) {
    FILE* file = std::fopen(options.json_file.c_str(), "w");
    if (!file) return fail_errno(-1, "cannot write '%s'", options.json_file.c_str());
    const std::string text = to_json(result, summary).dump(2) + "\n";
    std::fwrite(text.data(), 1, text.size(), file);
    if (std::fclose(file) != 0) return fail_errno(-1, "cannot write '%s'", options.json_file.c_str());
  }
  if (options.as_json) {
    print_json(to_json(result, summary));
  } else {
    print(table_of(result, summary).text() + crashes_of(result, directory));
  }
  return {};
}

Result<int> run_batch(const Options& options) {
  auto jobs = read_jobs_file(options.jobs_file);
  if (!jobs) return tl::unexpected(std::move(jobs).error());
  KernelBaseline baseline;
  if (!options.baseline.empty()) {
    auto read = read_baseline(options.baseline);
    if (!read) return tl::unexpected(std::move(read).error());
    baseline = std::move(*read);
  }
  auto link = connect_or_start();
  if (!link) return tl::unexpected(std::move(link).error());
  auto pool = prepare_daemon(*link, options.policy);
  if (!pool) return tl::unexpected(std::move(pool).error());
  auto workers = worker_count(options.workers, pool->policy, pool->devices.size());
  if (!workers) return tl::unexpected(std::move(workers).error());
  auto directory = make_output_directory(options.output);
  if (!directory) return tl::unexpected(std::move(directory).error());
  auto cursor = trace_cursor(*link);
  if (!cursor) return tl::unexpected(std::move(cursor).error());

  ::signal(SIGINT, interrupt);
  ::signal(SIGTERM, interrupt);
  const bool show = !options.quiet && ::isatty(STDERR_FILENO);
  const TimePoint begin = MonotonicClock().now();
  BatchResult result{pool->policy, *workers, {}, {}};
  auto finished = run_jobs(*jobs, {*workers, *directory}, interrupted, [&](const Progress& progress) {
    if (show) show_progress(progress, pool->policy);
  });
  if (show) std::fprintf(stderr, "\r\033[K");
  if (!finished) return tl::unexpected(std::move(finished).error());
  result.jobs = std::move(*finished);
  for (const JobResult& job : result.jobs) result.makespan = std::max(result.makespan, job.ended);
  if (interrupted) return 130;

  auto events = read_trace(*link, *cursor);
  if (!events) return tl::unexpected(std::move(events).error());
  add_trace(result, *events, begin);
  if (!options.trace.empty()) HEDDLE_TRY(write_perfetto(options.trace, result, *events, pool->devices, begin));
  const BatchSummary summary = summarise(result, baseline);
  HEDDLE_TRY(write_results(options, result, summary, *directory));
  return summary.crashed ? kFailure : kSuccess;
}

int batch(const Options& options) {
  auto status = run_batch(options);
  return status ? *status : report(status.error());
}

}  // namespace

void add_batch_command(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("batch", "Run a queue of programs under one policy, and report");
  command->add_option("jobs", options->jobs_file, "The queue: a TOML file of [[job]] entries")->required();
  command->add_option("--policy", options->policy,
                      "Placement policy, as 'heddle policies' lists them (default: the daemon's)");
  command->add_option("--workers", options->workers,
                      "Programs at once: a number, or auto (by the policy and the pool)");
  command->add_option("--trace", options->trace, "Write a trace for Perfetto to this file");
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
