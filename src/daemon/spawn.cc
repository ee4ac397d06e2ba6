#include "daemon/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string_view>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

namespace heddle::daemon {
namespace {

constexpr int kFirst = 3;         // of the child's descriptors
constexpr int kOutOfTheWay = 64;  // above every number that a child's descriptor gets

// What a process's own code brings about. Others come from outside, as SIGKILL does when memory runs out.
bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGILL || signal == SIGFPE ||
         signal == SIGSYS || signal == SIGTRAP;
}

// posix_spawn's two objects, released however the caller returns.
struct Plan {
  Plan() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~Plan() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

void plan_signals(Plan& plan, bool apart) {
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&plan.attributes, &none);
  ::posix_spawnattr_setsigdefault(&plan.attributes, &all);
  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (apart) flags |= POSIX_SPAWN_SETPGROUP;
  ::posix_spawnattr_setflags(&plan.attributes, flags);
}

// Descriptors travel over high numbers, so that none is overwritten by another's new number.
Result<std::vector<Fd>> plan_descriptors(Plan& plan, const SpawnOptions& options) {
  std::vector<Fd> moved;
  const auto place = [&](int from, int to) -> Status {
    Fd copy(::fcntl(from, F_DUPFD_CLOEXEC, kOutOfTheWay));
    if (!copy) return fail_errno(-1, "cannot duplicate descriptor %d for a child", from);
    ::posix_spawn_file_actions_adddup2(&plan.actions, copy.get(), to);
    moved.push_back(std::move(copy));
    return {};
  };
  if (options.input >= 0)
    HEDDLE_TRY(place(options.input, 0));
  else if (options.apart)
    ::posix_spawn_file_actions_addopen(&plan.actions, 0, "/dev/null", O_RDONLY, 0);
  if (options.output >= 0) {
    HEDDLE_TRY(place(options.output, 1));
    HEDDLE_TRY(place(options.output, 2));
  }
  for (size_t i = 0; i < options.descriptors.size(); ++i)
    HEDDLE_TRY(place(options.descriptors[i], kFirst + static_cast<int>(i)));
  ::posix_spawn_file_actions_addclosefrom_np(&plan.actions, kFirst + static_cast<int>(options.descriptors.size()));
  return moved;
}

bool is_harmless(std::string_view variable) {
  for (const std::string_view kept :
       {"PATH=", "LANG=", "LC_ALL=", "TZ=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS=", "LSAN_OPTIONS="}) {
    if (variable.substr(0, kept.size()) == kept) return true;
  }
  return false;
}

std::vector<char*> environment_for(const SpawnOptions& options) {
  std::vector<char*> variables;
  for (const std::string& each : options.environment) variables.push_back(const_cast<char*>(each.c_str()));
  for (char** each = environ; *each; ++each) {
    if (!options.apart || is_harmless(*each)) variables.push_back(*each);
  }
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

Result<Child> spawn(const SpawnOptions& options) {
  Plan plan;
  plan_signals(plan, options.apart);
  const auto moved = plan_descriptors(plan, options);
  if (!moved) return tl::unexpected(moved.error());

  std::vector<char*> arguments{const_cast<char*>(options.program.c_str())};
  for (const std::string& each : options.arguments) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  const std::vector<char*> environment = environment_for(options);

  Child child;
  const int status = ::posix_spawn(&child.pid, options.program.c_str(), &plan.actions, &plan.attributes,
                                   arguments.data(), environment.data());
  if (status != 0) return fail_errno(status, "cannot start '%s'", options.program.c_str());
  // Until it is reaped its number is its own, so this cannot meet another process.
  child.pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  if (!child.pidfd) {
    const int why = errno;
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, 0);
    return fail_errno(why, "cannot open a pidfd of process %d", child.pid);
  }
  ::fcntl(child.pidfd.get(), F_SETFD, FD_CLOEXEC);
  return child;
}

Ending ending_of(const Fd& pidfd) {
  siginfo_t info{};
  if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd.get()), &info, WEXITED | WNOHANG) != 0 ||
      info.si_pid == 0)
    return {};
  if (info.si_code == CLD_EXITED) return {stringf("exit status %d", info.si_status), true};
  return {stringf("signal %d (%s)", info.si_status, ::strsignal(info.si_status)), is_crash(info.si_status)};
}

std::string reap(const Fd& pidfd) {
  return ending_of(pidfd).how;
}

bool has_ended(const Fd& pidfd) {
  pollfd poll_fd{pidfd.get(), POLLIN, 0};
  return ::poll(&poll_fd, 1, 0) > 0;
}

void kill_process(const Fd& pidfd, int signal) {
  ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

}  // namespace heddle::daemon
