// heddle suspend and heddle resume: a job gives the devices' processors up, keeps its memory, there or in swap space,
// and goes on later.

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
    std::string text =
        stringf("job %s: %s of its tasks have work under way, %s are suspended", string_of(job, "job").c_str(),
                string_of(job, "suspending_tasks").c_str(), string_of(job, "suspended_tasks").c_str());
    if (number_of(job, "swapping_tasks") > 0)
      text += stringf(", the memory of %s is leaving its device", string_of(job, "swapping_tasks").c_str());
    std::fprintf(stderr, "\r\033[K%s (%ld s)", text.c_str(), static_cast<long>(waited / std::chrono::seconds(1)));
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

Error not_swapped(uint64_t job, const Json& now) {
  return {ErrorCode::kLimitExceeded, stringf("job %lu is suspended, and keeps memory on its device: %s",
                                             static_cast<unsigned long>(job), string_of(now, "not_swapped").c_str())};
}

bool is_under_way(const Json& job) {
  return number_of(job, "suspending_tasks") > 0 || number_of(job, "swapping_tasks") > 0;
}

// Until every task of the job is suspended, and no memory of it is leaving its device.
Result<Json> wait_until_suspended(DaemonLink& link, uint64_t job, Json now) {
  Progress progress;
  for (Duration pause = kFirstLook; now.value("suspended", false) && is_under_way(now);
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
  for (const char* key :
       {"job", "suspended", "suspended_tasks", "suspending_tasks", "swapped_tasks", "swapping_tasks", "swapped"})
    json[key] = job.value(key, Json());
  return json;
}

int suspend(uint64_t job, bool as_json, bool swap) {
  auto link = DaemonLink::connect(protocol::control_socket_path());
  if (!link) return report(link.error());
  ::signal(SIGINT, interrupt);
  ::signal(SIGTERM, interrupt);
  auto answer = link->request({{"command", "suspend"}, {"job", job}, {"swap", swap}});
  if (answer) answer = wait_until_suspended(*link, job, std::move(*answer));
  if (answer && swap && !is_under_way(*answer) && answer->contains("not_swapped"))
    return report(not_swapped(job, *answer));
  if (!answer) return report(answer.error());
  if (as_json) print_json(summary(*answer));
  if (!is_under_way(*answer)) return kSuccess;
  const auto number = static_cast<unsigned long>(job);
  std::fprintf(stderr,
               "heddle: job %lu is suspended as soon as what it has under way is done; 'heddle resume %lu' takes that "
               "back\n",
               number, number);
  return kInterrupted;
}

int resume(uint64_t job, bool as_json, bool) {
  auto link = DaemonLink::connect(protocol::control_socket_path());
  if (!link) return report(link.error());
  auto answer = link->request({{"command", "resume"}, {"job", job}});
  if (!answer) return report(answer.error());
  if (as_json) print_json(summary(*answer));
  return kSuccess;
}

CLI::App* add(CLI::App& app, Action& chosen, const char* name, const char* help, const char* more,
              int (*act)(uint64_t, bool, bool), const std::shared_ptr<bool>& swap) {
  auto job = std::make_shared<uint64_t>(0);
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("job", *job, "The job's number, as 'heddle ps' shows it")->required();
  command->add_flag("--json", *as_json, "Print what became of it as JSON");
  command->footer(more);
  command->callback([job, as_json, swap, act, &chosen] {
    chosen = [job, as_json, swap, act] { return act(*job, *as_json, *swap); };
  });
  return command;
}

}  // namespace

void add_suspend_commands(CLI::App& app, Action& chosen) {
  const auto swap = std::make_shared<bool>(false);
  CLI::App* command = add(
      app, chosen, "suspend", "Have a job leave the devices to others; it keeps its memory",
      "The job's programs keep all that is in their device memory. They are told nothing: what they launch, copy or\n"
      "allocate waits until 'heddle resume JOB'. Their memory stays on the device until others wait for it; then it "
      "is\n"
      "copied to swap space, memory of the machine (swap.host in heddled's configuration), and the device is theirs.\n"
      "Kernels that run are not cut short: the command waits for them. Ctrl-C ends the waiting alone; the job is "
      "suspended all the same.\n"
      "A job is refused, and nothing of it suspended, where a program keeps something in its worker that cannot be\n"
      "moved ('heddle ps' says 'revocable: no').",
      suspend, swap);
  command->add_flag("--swap", *swap, "Copy the memory to swap space at once, and wait for that");
  add(app, chosen, "resume", "Let a suspended job go on",
      "The job's programs go on where they were, on the same devices, each as soon as a worker is there for it. One "
      "whose\n"
      "memory lies in swap space waits in the line for a device of the model, and its memory is copied there.",
      resume, swap);
}

}  // namespace heddle::cli
