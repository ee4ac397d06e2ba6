// heddle top: devices and jobs, again and again, until Ctrl-C.

#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

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
  bool once = false;
  bool as_json = false;
};

// A look costs heddled one request for each 32 sessions: not more often than that.
constexpr Duration kShortest = std::chrono::seconds(1), kLongest = std::chrono::hours(1);

constexpr Duration kComesBack = std::chrono::seconds(10);  // a heddled that died and was started again
constexpr Duration kCallEvery = std::chrono::milliseconds(100);

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
volatile std::sig_atomic_t ended = 0, resized = 0;

void end(int) {
  ended = 1;
}
void resize(int) {
  resized = 1;
}

// Both without SA_RESTART: they end the sleep.
void take_signals() {
  struct sigaction action {};
  action.sa_handler = end;
  for (const int signal : kEnding) ::sigaction(signal, &action, nullptr);
  action.sa_handler = resize;
  ::sigaction(SIGWINCH, &action, nullptr);
}

winsize terminal() {
  winsize size{};
  ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  return size;
}

bool is_terminal() {
  const char* const kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) && kind && *kind && std::string_view(kind) != "dumb";
}

// From the terminal's first line on, over what stands there: nothing flickers. No mode of the terminal is changed, so
// that nothing is to be undone, however the program stops or ends.
void redraw(const Json& object) {
  resized = 0;
  const winsize size = terminal();
  // The last line stays empty: a newline there would scroll.
  const size_t lines = size.ws_row > 1 ? size.ws_row - 1u : 0u;
  std::string drawn = "\x1b[H";
  for (const char each : top_text(object, size.ws_col, lines)) {
    if (each == '\n') drawn += "\x1b[K";
    drawn += each;
  }
  print(drawn + "\x1b[J");
}

// Until `until`, or a signal. One that comes between the look at the flags and the sleep ends that, too.
void sleep_until(TimePoint until) {
  sigset_t watched, before;
  sigemptyset(&watched);
  for (const int signal : kEnding) sigaddset(&watched, signal);
  sigaddset(&watched, SIGWINCH);
  ::sigprocmask(SIG_BLOCK, &watched, &before);
  const Duration time = std::max(until - MonotonicClock().now(), Duration::zero());
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const timespec limit{whole.count(), (time - whole).count()};
  if (!ended && !resized) ::ppoll(nullptr, 0, &limit, &before);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

// The user's name, or else the number. Asked for once: the answer may come over a network.
const std::string& user_name(uid_t uid) {
  static std::map<uid_t, std::string> known;
  const auto [name, is_new] = known.try_emplace(uid);
  if (!is_new) return name->second;
  std::vector<char> text(16384);
  passwd entry{}, *found = nullptr;
  ::getpwuid_r(uid, &entry, text.data(), text.size(), &found);
  return name->second = found ? found->pw_name : std::to_string(uid);
}

Result<TopSample> look(DaemonLink& link) {
  auto whole = link.whole();
  if (!whole) return tl::unexpected(std::move(whole).error());
  for (Json& job : whole->at("jobs")) job["user"] = user_name(static_cast<uid_t>(count_of(job, "uid")));
  return TopSample{std::move(*whole)};
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

// Prints looks as they come; on a terminal each takes the last one's place.
class Screen {
 public:
  explicit Screen(const TopOptions& options)
      : as_json_(options.as_json), redraws_(!as_json_ && !options.once && options.count == 0 && is_terminal()) {
    if (redraws_) print(std::string(terminal().ws_row, '\n'));  // what stands there scrolls up, and is not lost
  }

  Status show(Json object) {
    shown_ = std::move(object);
    if (redraws_) {
      redraw(shown_);
    } else {
      print(as_json_ ? json_text(shown_) + "\n" : top_text(shown_, 0, 0) + "\n");
    }
    // Where a pipe's reader is gone and SIGPIPE is ignored, nothing else ends us.
    if (std::ferror(stdout)) return fail(ErrorCode::kSystem, "top: cannot write to the standard output");
    return {};
  }
  // Until then; a terminal that changes its size is drawn anew from the last look.
  void rest_until(TimePoint until) const {
    while (!ended && MonotonicClock().now() < until) {
      sleep_until(until);
      if (std::exchange(resized, 0) && redraws_) redraw(shown_);
    }
  }
  // The shell goes on below the "^C".
  void leave() const {
    if (redraws_) print("\n");
  }

 private:
  bool as_json_, redraws_;
  Json shown_;
};

Status repeat(DaemonLink& link, const TopOptions& options, Duration every, Screen& screen) {
  TopSample before;
  for (uint32_t looks = 0; !ended;) {
    const TimePoint next = MonotonicClock().now() + every;
    auto now = look_lastingly(link);
    if (!now) return tl::unexpected(std::move(now).error());
    ++looks;
    if (!options.once || looks == 2) HEDDLE_TRY(screen.show(top_object(before, *now)));
    if (looks == (options.once ? 2 : options.count)) break;
    before = std::move(*now);
    screen.rest_until(next);
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
  take_signals();
  Screen screen(options);
  const Status done = repeat(*link, options, *every, screen);
  screen.leave();
  // A look that Ctrl-C has cut short is no failure.
  return done || ended ? kSuccess : report(done.error());
}

}  // namespace

void add_top_command(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* command = app.add_subcommand("top", "Show what the devices and the jobs do, again and again");
  command->add_option("--every", options->every, "Time from look to look, 1s to 1h")->capture_default_str();
  auto* count = command->add_option("--count", options->count, "End after so many looks (default: with Ctrl-C)");
  command->add_flag("--once", options->once, "One look, with what was busy in the time (--every) before it")
      ->excludes(count);
  command->add_flag("--json", options->as_json, "One JSON object a line, for each look");
  command->footer(
      "BUSY and GOT are the part of the last interval in which a kernel, a library call or a fill of the programs on\n"
      "the device, or of the job, was on a device; copies do not count. What runs side by side counts each, so that "
      "it\n"
      "may exceed 100%. What was handed to the device counts until its true start is known. On GPUs, what ends under\n"
      "one fence shares its time evenly: a copy beside a kernel may count in part.\n"
      "MEMORY is what the job holds or has asked for.\n"
      "WEIGHT and ASKED are what the job asked for of a device that is lent to one after the other; LEASE says who "
      "has\n"
      "it, or whether the job has it (held, draining, waits, idle), and for how long.\n"
      "WAITED, FOR and WHY tell of the job's task that has waited longest, as heddled has it: for memory, SMs, a "
      "device\n"
      "of its own, an older request, the user's limit, its own frees that are under way, a worker that starts, or the\n"
      "lease.");
  command->callback([options, &chosen] { chosen = [options] { return top(*options); }; });
}

}  // namespace heddle::cli
