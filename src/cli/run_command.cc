// heddle run: one program, as if heddle were not there: stdin, terminal, signals and exit status pass through.

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/tenant.h"
#include "core/clock.h"

namespace heddle::cli {
namespace {

struct RunOptions {
  std::vector<std::string> command;
  std::string memory, wait_timeout, name, slo, managed;
  DeviceShare share;
  bool check = false;
};

constexpr Duration kTick = std::chrono::seconds(1);  // how often a running job's waiting is looked at

pid_t signalled_child = 0;

void pass_on(int signal) {
  if (signalled_child > 0) ::kill(signalled_child, signal);
}

// The terminal sends Ctrl-C to the whole foreground group, the child included, so heddle only has to survive it. What
// is sent to heddle's pid alone goes on to the child.
void arrange_signals(pid_t child) {
  signalled_child = child;
  for (int signal : {SIGINT, SIGQUIT}) ::signal(signal, SIG_IGN);
  for (int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) ::signal(signal, pass_on);
}

// Ends as the child did: with its status, or by its signal.
int end_like(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  return 128 + signal;
}

// Looks at a running job once a tick: says on stderr what it waits for, and since when.
class WaitWatch {
 public:
  WaitWatch(DaemonLink& link, Job job, Duration limit) : link_(link), job_(job), limit_(limit) {}

  // True when the job has waited for longer than it may.
  bool too_long() {
    auto answer = link_.request({{"command", "job"}, {"job", job_.id}});
    if (!answer) return false;  // a daemon that restarts: the program itself knows what to do
    const Json& state = *answer;
    const Duration waited(static_cast<int64_t>(number_of(state, "waiting_ns")));
    if (waited < kTick) {
      said_.clear();
      return false;
    }
    const std::string reason = string_of(state, "waiting_for", "a device");
    if (reason != said_) std::fprintf(stderr, "heddle: waiting for %s\n", reason.c_str());
    said_ = reason;
    return limit_.count() > 0 && waited > limit_;
  }

 private:
  DaemonLink& link_;
  Job job_;
  Duration limit_;
  std::string said_;
};

int wait_for(pid_t child, DaemonLink& anchor, DaemonLink& queries, Job job, Duration limit) {
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  WaitWatch watch(queries, job, limit);
  bool timed_out = false, cancelled = false, anchored = true;
  for (;;) {
    pollfd ready[2] = {{pidfd.get(), POLLIN, 0}, {anchored ? anchor.descriptor() : -1, POLLIN, 0}};
    ::poll(ready, 2, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kTick).count()));
    int status;
    if (::waitpid(child, &status, WNOHANG) == child) {
      if (timed_out) return kWaitTimeout;
      return end_like(status);
    }
    if (ready[1].revents) {
      auto event = anchor.take_event();
      if (!event) anchored = false;  // heddled was restarted; the job goes on
      if (event && *event && string_of(**event, "event") == "cancelled" && !cancelled) {
        cancelled = true;
        std::fprintf(stderr, "heddle: the job was cancelled\n");
        ::kill(child, SIGTERM);
      }
    }
    if (!timed_out && watch.too_long()) {
      timed_out = true;
      std::fprintf(stderr, "heddle: waited for longer than --wait-timeout allows; ending the program\n");
      ::kill(child, SIGTERM);
    }
  }
}

// What the checks found, and with it how the job ends: a program that ended well did not do well then.
int end_checked(DaemonLink& link, Job job, int status) {
  auto state = link.request({{"command", "job"}, {"job", job.id}});
  if (!state) {
    report(state.error());
    return status;
  }
  const auto findings = count_of(*state, "findings");
  std::fprintf(stderr, "heddle: check: %lu %s\n", static_cast<unsigned long>(findings),
               findings == 1 ? "finding" : "findings");
  return findings != 0 && status == kSuccess ? kCheckFound : status;
}

// The options' share, with class and SLO as heddled takes them.
Result<DeviceShare> share_of(const RunOptions& options) {
  DeviceShare share = options.share;
  if (!options.slo.empty()) {
    const auto slo = parse_duration(options.slo);
    if (!slo) return tl::unexpected(slo.error());
    share.slo = *slo;
  }
  if (const auto wrong = wrong_class(share.job_class, share.slo))
    return fail(ErrorCode::kInvalidArgument, "--%s: %s", wrong->key, wrong->text.c_str());
  return share;
}

int run(const RunOptions& options) {
  Bytes memory;
  Duration limit{};
  if (!options.memory.empty()) {
    auto parsed = parse_bytes(options.memory);
    if (!parsed) return report(parsed.error());
    memory = *parsed;
  }
  if (!options.wait_timeout.empty()) {
    auto parsed = parse_duration(options.wait_timeout);
    if (!parsed) return report(parsed.error());
    limit = *parsed;
  }
  const auto share = share_of(options);
  if (!share) return report(share.error());
  auto anchor = connect_or_start();
  if (!anchor) return report(anchor.error());
  auto queries = connect_or_start();
  if (!queries) return report(queries.error());
  auto job = open_job(*anchor, {options.name.empty() ? options.command[0] : options.name, memory, *share});
  if (!job) return report(job.error());

  TenantOptions tenant;
  tenant.command = options.command;
  tenant.job = *job;
  tenant.check = options.check;
  tenant.managed = options.managed;
  auto child = start_tenant(tenant);
  if (!child) {
    report(child.error());
    return child.error().code == ErrorCode::kNotFound ? kCannotRun : kNotExecutable;
  }
  arrange_signals(*child);
  const int status = wait_for(*child, *anchor, *queries, *job, limit);
  return options.check ? end_checked(*queries, *job, status) : status;
}

}  // namespace

void add_run_command(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run one CUDA program on the shared devices");
  command->add_option("--mem", options->memory, "Device memory the job may hold, like 8G (default: one whole device)");
  command->add_option("--weight", options->share.weight,
                      "Its weight against other jobs on a device (default: 1; dispatch policies fs, tfs)");
  command->add_option("--share", options->share.share,
                      "The part of a device's time that it is to get while it has work, like 0.3 (default: 0; token)");
  command->add_option("--limit", options->share.limit,
                      "The part of a device's time that it is never to exceed, like 0.6 (default: 1; token)");
  command->add_option("--class", options->share.job_class,
                      "batch, or user-facing: somebody waits for each of its requests, which are bursts of work on the "
                      "device (default: batch; dispatch policies priority, elastic)");
  command->add_option("--slo", options->slo,
                      "How long a request of a user-facing job may take, like 200ms, 1ms to 1h (default: 200ms)");
  command->add_option("--app", options->share.app,
                      "What jobs of its kind are known by, for policies that learn (default: the program's file name)");
  command->add_option("--wait-timeout", options->wait_timeout,
                      "End the program (status 124) when it has waited for a device for so long, like 30s");
  command->add_option("--name", options->name, "What 'heddle ps' calls the job (default: the program)");
  command
      ->add_flag("--check", options->check,
                 "Check kernels for races on shared memory and reads of what nobody wrote (software devices; slow): "
                 "findings on stderr, and status 66 where the program would have ended with 0")
      ->envname("HEDDLE_CHECK");
  command
      ->add_option("--managed", options->managed,
                   "Where managed memory lives: host, for programs whose kernels and host use it at the same time, or "
                   "device, which has it while kernels run (default: as heddled's managed_memory says)")
      ->check(CLI::IsMember({"host", "device"}))
      ->envname("HEDDLE_MANAGED");
  command->add_option("command", options->command, "The program and its arguments, after --")->required();
  command->positionals_at_end();
  command->footer(
      "The program needs no change: stdin, terminal, signals and exit status pass through. Without a daemon one is\n"
      "started. Examples: heddle run --mem 2G -- ./vecadd 1000000\n"
      "                  heddle run --class user-facing --slo 100ms -- ./server    (heddle ps shows what was met)");
  command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace heddle::cli
