// heddle top: devices and jobs, again and again, until Ctrl-C.

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/output.h"
#include "cli/top/top_view.h"
#include "core/clock.h"
#include "protocol/socket_path.h"

namespace heddle::cli {
namespace {

struct TopOptions {
  std::string every = "1s";
  uint32_t count = 0;  // 0: until it is ended
  bool as_json = false;
};

constexpr Duration kShortest = std::chrono::milliseconds(100), kLongest = std::chrono::hours(1);

constexpr Duration kComesBack = std::chrono::seconds(10);  // a heddled that died and was started again
constexpr Duration kCallEvery = std::chrono::milliseconds(100);

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
volatile std::sig_atomic_t ended = 0;

void end(int) {
  ended = 1;
}

winsize terminal() {
  winsize size{};
  ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  return size;
}

// From the terminal's first line on. It is left as it is whenever the program stops or ends: nothing is to be undone.
void redraw(const Json& object) {
  const winsize size = terminal();
  // The last line stays empty: a newline there would scroll.
  const size_t lines = size.ws_row > 1 ? size.ws_row - 1u : 0u;
  print("\x1b[H\x1b[J" + top_text(object, size.ws_col, lines));
}

// Until a signal has ended it at the latest. One that comes between the look at `ended` and the sleep ends that, too.
void rest(Duration time) {
  sigset_t ending, before;
  sigemptyset(&ending);
  for (const int signal : kEnding) sigaddset(&ending, signal);
  ::sigprocmask(SIG_BLOCK, &ending, &before);
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const timespec limit{whole.count(), (time - whole).count()};
  if (!ended) ::ppoll(nullptr, 0, &limit, &before);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

Result<TopSample> look(DaemonLink& link) {
  TopSample sample;
  auto devices = link.request({{"command", "devices"}});
  if (!devices) return tl::unexpected(std::move(devices).error());
  sample.at = MonotonicClock().now();
  auto ps = link.ps();
  if (!ps) return tl::unexpected(std::move(ps).error());
  sample.devices = std::move(*devices);
  sample.ps = std::move(*ps);
  return sample;
}

// Goes on with the successor of a heddled that died.
Result<TopSample> look_lastingly(DaemonLink& link) {
  auto sample = look(link);
  for (Duration waited{}; waited < kComesBack && !ended; waited += kCallEvery) {
    if (sample || sample.error().code != ErrorCode::kPeerDied) break;
    std::this_thread::sleep_for(kCallEvery);
    auto successor = DaemonLink::connect(protocol::control_socket_path());
    if (!successor) continue;
    link = std::move(*successor);
    sample = look(link);
  }
  return sample;
}

Status repeat(DaemonLink& link, const TopOptions& options, Duration every) {
  const bool redraws = !options.as_json && options.count == 0 && ::isatty(STDOUT_FILENO);
  if (redraws) print(std::string(terminal().ws_row, '\n'));  // what stands there scrolls up, and is not lost
  TopSample before;
  for (uint32_t shown = 0; !ended;) {
    auto now = look_lastingly(link);
    if (!now) return tl::unexpected(std::move(now).error());
    const Json object = top_object(before, *now);
    if (redraws) {
      redraw(object);
    } else {
      print(options.as_json ? object.dump() + "\n" : top_text(object, 0, 0) + "\n");
    }
    // Where a pipe's reader is gone and SIGPIPE is ignored, nothing else ends us.
    if (std::ferror(stdout)) return fail(ErrorCode::kSystem, "top: cannot write to the standard output");
    if (++shown == options.count) break;
    before = std::move(*now);
    rest(every);
  }
  return {};
}

int top(const TopOptions& options) {
  const auto every = parse_duration(options.every);
  if (!every) return report(every.error());
  if (*every < kShortest || *every > kLongest)
    return report(
        Error{ErrorCode::kInvalidArgument, stringf("--every is %s, it must be %s to %s", options.every.c_str(),
                                                   to_string(kShortest).c_str(), to_string(kLongest).c_str())});
  auto link = DaemonLink::connect(protocol::control_socket_path());
  if (!link) return report(link.error());
  struct sigaction action {};
  action.sa_handler = end;  // without SA_RESTART: it ends the sleep
  for (const int signal : kEnding) ::sigaction(signal, &action, nullptr);
  const Status done = repeat(*link, options, *every);
  // A look that Ctrl-C has cut short is no failure.
  return done || ended ? kSuccess : report(done.error());
}

}  // namespace

void add_top_command(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* command = app.add_subcommand("top", "Show what the devices and the jobs do, again and again");
  command->add_option("--every", options->every, "Time from look to look, 100ms to 1h")->capture_default_str();
  command->add_option("--count", options->count, "End after so many looks (default: with Ctrl-C)");
  command->add_flag("--json", options->as_json, "One JSON object a line, for each look");
  command->footer(
      "BUSY is the part of the last interval in which a kernel, a library call or a fill of the job, or of the\n"
      "programs on the device, was on the device; copies do not count. What runs side by side counts each, so that it\n"
      "may exceed 100%. What was handed to the device counts until its true start is known. On GPUs, what ends under "
      "one\n"
      "fence shares its time evenly: a copy beside a kernel may count in part. WHY says what a waiting job waits for.");
  command->callback([options, &chosen] { chosen = [options] { return top(*options); }; });
}

}  // namespace heddle::cli
