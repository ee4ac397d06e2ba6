// heddle suspend and heddle resume: a job gives the devices' processors up, keeps its memory, and goes on later.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/output.h"
#include "core/clock.h"
#include "protocol/socket_path.h"

namespace heddle::cli {
namespace {

constexpr int kInterrupted = 130;
// Between looks at how far it is: a job with nothing under way is suspended at once.
constexpr Duration kFirstLook = std::chrono::milliseconds(10), kLook = std::chrono::milliseconds(200);
constexpr Duration kQuietly = std::chrono::seconds(1);  // until a terminal is told what it waits for

volatile sig_atomic_t interrupted = 0;

void interrupt(int) {
  interrupted = 1;
}

// What a terminal shows while tasks still end what they have under way; one line, which is gone in the end.
class Progress {
 public:
  Progress() : shown_(::isatty(STDERR_FILENO) == 1), begun_(MonotonicClock().now()) {}
  ~Progress() { clear(); }

  void show(const Json& job) {
    const Duration waited = MonotonicClock().now() - begun_;
    if (!shown_ || waited < kQuietly) return;
    std::fprintf(stderr, "\r\033[Kjob %s: %s of its tasks have work under way, %s are suspended (%ld s)",
                 string_of(job, "job").c_str(), string_of(job, "suspending_tasks").c_str(),
                 string_of(job, "suspended_tasks").c_str(), static_cast<long>(waited / std::chrono::seconds(1)));
    any_ = true;
  }
  void clear() {
    if (std::exchange(any_, false)) std::fprintf(stderr, "\r\033[K");
  }

 private:
  bool shown_, any_ = false;
  TimePoint begun_;
};

Error not_suspended(uint64_t job, const Json& now) {
  const auto number = static_cast<unsigned long>(job);
  const std::string why = string_of(now, "not_suspended");
  if (why.empty()) return {ErrorCode::kCancelled, stringf("job %lu was resumed before it was suspended", number)};
  return {ErrorCode::kNotSupported, stringf("job %lu cannot be suspended, and goes on: %s", number, why.c_str())};
}

// Until every task of the job is suspended.
Result<Json> wait_until_suspended(DaemonLink& link, uint64_t job, Json now) {
  Progress progress;
  for (Duration pause = kFirstLook; now.value("suspended", false) && number_of(now, "suspending_tasks") > 0;
       pause = std::min(2 * pause, kLook)) {
    if (interrupted) return now;
    progress.show(now);
    std::this_thread::sleep_for(pause);
    auto answer = link.request({{"command", "job"}, {"job", job}});
    if (!answer) return answer;
    now = std::move(*answer);
  }
  if (!now.value("suspended", false)) return tl::unexpected(not_suspended(job, now));
  return now;
}

Json summary(const Json& job) {
  Json json;
  for (const char* key : {"job", "suspended", "suspended_tasks", "suspending_tasks"})
    json[key] = job.value(key, Json());
  return json;
}

int suspend(uint64_t job, bool as_json) {
  auto link = DaemonLink::connect(protocol::control_socket_path());
  if (!link) return report(link.error());
  ::signal(SIGINT, interrupt);
  ::signal(SIGTERM, interrupt);
  auto answer = link->request({{"command", "suspend"}, {"job", job}});
  if (answer) answer = wait_until_suspended(*link, job, std::move(*answer));
  if (!answer) return report(answer.error());
  if (as_json) print_json(summary(*answer));
  if (number_of(*answer, "suspending_tasks") == 0) return kSuccess;
  const auto number = static_cast<unsigned long>(job);
  std::fprintf(stderr,
               "heddle: job %lu is suspended as soon as what it has under way is done; 'heddle resume %lu' takes that "
               "back\n",
               number, number);
  return kInterrupted;
}

int resume(uint64_t job, bool as_json) {
  auto link = DaemonLink::connect(protocol::control_socket_path());
  if (!link) return report(link.error());
  auto answer = link->request({{"command", "resume"}, {"job", job}});
  if (!answer) return report(answer.error());
  if (as_json) print_json(summary(*answer));
  return kSuccess;
}

void add(CLI::App& app, Action& chosen, const char* name, const char* help, const char* more,
         int (*act)(uint64_t, bool)) {
  auto job = std::make_shared<uint64_t>(0);
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("job", *job, "The job's number, as 'heddle ps' shows it")->required();
  command->add_flag("--json", *as_json, "Print what became of it as JSON");
  command->footer(more);
  command->callback([job, as_json, act, &chosen] { chosen = [job, as_json, act] { return act(*job, *as_json); }; });
}

}  // namespace

void add_suspend_commands(CLI::App& app, Action& chosen) {
  add(app, chosen, "suspend", "Have a job leave the devices to others; it keeps its memory",
      "The job's programs keep their device memory and all that is in it, and their place. They are told nothing: "
      "what\n"
      "they launch, copy or allocate waits until 'heddle resume JOB'. Kernels that run are not cut short: the command\n"
      "waits for them. Ctrl-C ends the waiting alone; the job is suspended all the same.\n"
      "A job is refused, and nothing of it suspended, where a program keeps something in its worker that cannot be\n"
      "moved ('heddle ps' says 'revocable: no').",
      suspend);
  add(app, chosen, "resume", "Let a suspended job go on",
      "The job's programs go on where they were, on the same devices, each as soon as a worker is there for it.",
      resume);
}

}  // namespace heddle::cli
